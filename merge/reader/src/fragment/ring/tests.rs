use super::*;
use sa_format::LANE_BASE;

const PAGE: usize = 4096;
const SIZE: usize = 4096;

/// A ring with one slot and one lane, as the format describes it.
struct Image(Vec<u8>);

impl Image {
    fn new() -> Image {
        let mut image = Image(vec![0; 4 * PAGE + SIZE]);
        image.put(0, &layout::MAGIC);
        image.put(layout::VERSION_AT, &1u32.to_ne_bytes());
        image.put(layout::PAGE_BYTES_AT, &4096u32.to_ne_bytes());
        image.put(layout::NONCE_AT, &0x1234u64.to_ne_bytes());
        image.put(layout::PID_AT, &4711u32.to_ne_bytes());
        image.put(layout::SITES_OFFSET_AT, &4096u32.to_ne_bytes());
        image.put(layout::SITES_BYTES_AT, &4096u32.to_ne_bytes());
        let site = br#""name":"step","cat":"worker""#;
        assert_eq!(site.len(), 28);
        image.put(PAGE, &28u16.to_ne_bytes());
        image.put(PAGE + 2, site);
        image.put(layout::LANES_OFFSET_AT, &8192u32.to_ne_bytes());
        image.put(layout::LANES_COUNT_AT, &1u32.to_ne_bytes());
        image.put(layout::DIRECTORY_OFFSET_AT, &256u32.to_ne_bytes());
        image.put(layout::DIRECTORY_COUNT_AT, &4u32.to_ne_bytes());
        image.put(256, &(3 * PAGE as u64).to_ne_bytes());
        image.put(264, &4096u32.to_ne_bytes());
        image.put(
            268,
            &layout::entry_sum(0, 3 * PAGE as u64, 4096).to_ne_bytes(),
        );
        let sum = layout::header_sum(image.0.first_chunk().expect("longer"));
        image.put(layout::SUM_AT, &sum.to_ne_bytes());
        image.state(0, 0, 0);
        image.put(3 * PAGE + layout::SLOT_TID_AT, &4712u32.to_ne_bytes());
        image
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn state(&mut self, flushed: u64, head: u64, depth: u64) {
        self.put(
            3 * PAGE + layout::SLOT_STATE_AT,
            &layout::state(head, depth, layout::key(0, 0)).to_ne_bytes(),
        );
        self.put(3 * PAGE + layout::SLOT_FLUSHED_AT, &flushed.to_ne_bytes());
    }

    fn line(&mut self, position: u64, text: &[u8]) {
        for (index, byte) in text.iter().enumerate() {
            let at = 4 * PAGE + (usize::try_from(position).expect("small") + index) % SIZE;
            self.0[at] = *byte;
        }
    }

    fn entry(&mut self, at: usize, start_ns: u64, site: u32) {
        self.put(at, &start_ns.to_ne_bytes());
        self.put(at + layout::OPEN_SITE_AT, &site.to_ne_bytes());
    }

    fn recover(&self) -> Option<Ring> {
        recover(&self.0.as_slice())
    }
}

#[test]
fn open_spans_have_their_names() {
    let mut image = Image::new();
    image.state(0, 0, 2);
    let stack = 3 * PAGE + layout::SLOT_STACK_AT;
    image.entry(stack, 1000, 1);
    image.entry(stack + 64, 2000, 0);
    image.put(stack + 64 + layout::OPEN_NAME_LEN_AT, &4u32.to_ne_bytes());
    image.put(stack + 64 + layout::STACK_NAME_AT, b"a\"b\xc3");
    let open = image.recover().expect("a ring").slots.remove(0).open;
    assert_eq!(open[0].label, r#""name":"step","cat":"worker""#);
    assert_eq!(open[1].label, r#""name":"a\"b","cat":"""#);
    assert_eq!((open[1].tid, open[1].start_ns), (4712, 2000));
}

/// Where the image has the text area of its slot, and what the header says of it.
const TEXTS: usize = 3 * PAGE - 1024;

impl Image {
    fn with_texts(areas: layout::TextAreas) -> Image {
        let mut image = Image::new();
        image.put(layout::TEXT_AREAS_AT, &areas.fields());
        image
    }

    /// Puts a text of a span into its area and its place into the entry at `entry`.
    fn text(&mut self, entry: usize, area: usize, text: layout::SpanText, bytes: &[u8]) {
        self.put(area + text.at as usize, bytes);
        self.put(entry + layout::OPEN_TEXT_AT, &word(text).to_ne_bytes());
    }
}

fn of_slots() -> layout::TextAreas {
    layout::TextAreas {
        slot_bytes: 1024,
        ..layout::TextAreas::default()
    }
}

fn word(text: layout::SpanText) -> u64 {
    layout::text_word(text.at as usize, text.names.into(), text.args.into())
}

fn span_text(at: u32, names: u16, args: u16) -> layout::SpanText {
    layout::SpanText { at, names, args }
}

#[test]
fn issue_19_open_spans_have_their_args() {
    let mut image = Image::with_texts(of_slots());
    image.state(0, 0, 2);
    let stack = 3 * PAGE + layout::SLOT_STACK_AT;
    image.entry(stack, 1000, 1);
    let (names, args) = (r#""name":"a","cat":"b""#, r#""id":"x","n":[1]"#);
    image.text(stack, TEXTS, span_text(3, 0, 16), args.as_bytes());
    image.entry(stack + 64, 2000, 0);
    let both = [names, args].concat();
    let text = span_text(100, u16::try_from(names.len()).unwrap(), 16);
    image.text(stack + 64, TEXTS, text, both.as_bytes());
    let ring = image.recover().expect("a ring");
    let open = &ring.slots[0].open;
    let found = |at: usize| (open[at].label.as_str(), open[at].args.as_str());
    assert_eq!(found(0), (r#""name":"step","cat":"worker""#, args));
    assert_eq!(found(1), (names, args));
    assert!(ring.bad_texts.is_empty());
}

#[test]
fn issue_19_a_text_that_is_none_is_counted_and_not_shown() {
    let (stack, long) = (3 * PAGE + layout::SLOT_STACK_AT, [b'['; 200]);
    let bad: [(u32, &[u8]); 8] = [
        (0, b"\"a\":1,"),
        (0, b"\"a\":1},{\"b\":2"),
        (0, b"\"a\":\xff"),
        (0, b"\"a\":\n1"),
        (0, b"x"),
        (0, &long),
        (1022, b"\"a\":1"),
        (u32::MAX, b"\"a\":1"),
    ];
    for (at, args) in bad {
        let mut image = Image::with_texts(of_slots());
        image.state(0, 0, 1);
        image.entry(stack, 1000, 1);
        let text = span_text(at, 0, u16::try_from(args.len()).unwrap());
        image.put(stack + layout::OPEN_TEXT_AT, &word(text).to_ne_bytes());
        if at == 0 {
            image.put(TEXTS, args);
        }
        let ring = image.recover().expect("a ring");
        let open = &ring.slots[0].open[0];
        assert_eq!((open.start_ns, open.args.as_str()), (1000, ""), "{args:?}");
        assert_eq!(ring.bad_texts, [TEXTS as u64 + u64::from(at)], "{args:?}");
    }
}

#[test]
fn issue_19_a_ring_without_texts_reads_none() {
    let stack = 3 * PAGE + layout::SLOT_STACK_AT;
    let mut fields = of_slots().fields();
    fields[3] ^= 1;
    for fields in [[0; layout::TEXT_AREAS_BYTES], fields] {
        let mut image = Image::new();
        image.put(layout::TEXT_AREAS_AT, &fields);
        image.state(0, 0, 1);
        image.entry(stack, 1000, 0);
        let name = "a name of forty-eight bytes, which is all it has";
        image.put(stack + layout::OPEN_NAME_LEN_AT, &48u32.to_ne_bytes());
        image.put(stack + layout::STACK_NAME_AT, name.as_bytes());
        let ring = image.recover().expect("a ring");
        let open = &ring.slots[0].open[0];
        assert_eq!(open.label, format!(r#""name":"{name}","cat":"""#));
        assert!(open.args.is_empty() && ring.bad_texts.is_empty());
    }
}

#[test]
fn issue_19_open_lanes_have_their_args() {
    let areas = layout::TextAreas {
        lanes_offset: 512,
        lanes_count: 1,
        lane_bytes: 256,
        ..layout::TextAreas::default()
    };
    let args = r#""id":"x""#;
    for (size, expected) in [(256, args), (255, "")] {
        let mut image = Image::with_texts(areas);
        let group = 2 * PAGE + 512;
        image.put(512, &(group as u64).to_ne_bytes());
        image.put(520, &u32::to_ne_bytes(size));
        let sum = layout::entry_sum(0, group as u64, size);
        image.put(524, &sum.to_ne_bytes());
        image.entry(2 * PAGE, 1000, 1);
        image.text(2 * PAGE, group, span_text(0, 0, 8), args.as_bytes());
        let ring = image.recover().expect("a ring");
        assert_eq!(ring.lanes[0].span.args, expected);
    }
}

/// Counts what is read of a ring, of which an entry changes after it was read once.
struct Live {
    image: Vec<u8>,
    entry: u64,
    reads: std::cell::Cell<u32>,
}

impl RingBytes for Live {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        self.image.as_slice().read(offset, buffer)?;
        if offset == self.entry {
            self.reads.set(self.reads.get() + 1);
            if self.reads.get() > 1 {
                buffer[0] ^= 1; // another start
            }
        }
        Some(())
    }

    fn len(&self) -> u64 {
        self.image.len() as u64
    }
}

#[test]
fn issue_19_the_text_of_an_entry_that_changed_meanwhile_does_not_count() {
    let mut image = Image::with_texts(of_slots());
    image.state(0, 0, 1);
    let stack = 3 * PAGE + layout::SLOT_STACK_AT;
    image.entry(stack, 1000, 1);
    image.text(stack, TEXTS, span_text(0, 0, 5), br#""a":1"#);
    let live = Live {
        image: image.0,
        entry: stack as u64,
        reads: std::cell::Cell::new(0),
    };
    let ring = recover(&live).expect("a ring");
    assert_eq!(ring.slots[0].open[0].args, "");
    assert!(ring.bad_texts.is_empty(), "nor is it damage");
}

#[test]
fn issue_47_a_span_below_others_is_closed_once_its_line_is_published() {
    let mut image = Image::new();
    let stack = 3 * PAGE + layout::SLOT_STACK_AT;
    for (depth, start_ns) in (0..).zip([1000, 2000, 3000]) {
        image.entry(stack + depth * layout::OPEN_ENTRY_BYTES, start_ns, 1);
    }
    let ending = layout::ending(7, 1).to_ne_bytes();
    image.put(3 * PAGE + layout::SLOT_ENDING_AT, &ending);
    let open = |image: &Image| -> Vec<u64> {
        let ring = image.recover().expect("a ring");
        ring.slots[0]
            .open
            .iter()
            .map(|span| span.start_ns)
            .collect()
    };
    image.state(0, 7, 3);
    assert_eq!(open(&image), [1000, 2000, 3000]);
    image.state(0, 8, 3);
    assert_eq!(open(&image), [1000, 3000]);
}

/// A span on lane 2²² + `lane`, within that of `parent`.
fn open_lane(lane: u32, start_ns: u64, parent: Option<u32>) -> OpenLane {
    OpenLane {
        span: OpenSpan {
            tid: LANE_BASE + lane,
            start_ns,
            ..OpenSpan::default()
        },
        parent: parent.map(|parent| LANE_BASE + parent),
    }
}

fn shown(lanes: &[OpenLane]) -> Vec<(u32, u64)> {
    let spans = rows(lanes.iter()).into_iter();
    spans
        .map(|span| (span.tid - LANE_BASE, span.start_ns))
        .collect()
}

#[test]
fn circles_end() {
    let same = [
        open_lane(0, 10, Some(1)),
        open_lane(1, 10, Some(0)),
        open_lane(2, 10, Some(2)),
    ];
    assert_eq!(shown(&same), [(0, 10), (1, 10), (2, 10)]);
    let round = [open_lane(0, 20, Some(1)), open_lane(1, 10, Some(0))];
    assert_eq!(shown(&round), [(1, 10), (1, 20)]);
}

#[test]
fn the_table_names_the_parents() {
    let mut image = Image::new();
    image.put(layout::LANES_COUNT_AT, &3u32.to_ne_bytes());
    let sum = layout::header_sum(image.0.first_chunk().expect("longer"));
    image.put(layout::SUM_AT, &sum.to_ne_bytes());
    let parents = [0, 1, u32::MAX];
    for (lane, parent) in (0..).zip(parents) {
        let at = 2 * PAGE + lane * layout::OPEN_ENTRY_BYTES;
        image.entry(at, 1000 + lane as u64, 1);
        image.put(at + layout::LANE_PARENT_AT, &u32::to_ne_bytes(parent));
    }
    let lanes = image.recover().expect("a ring").lanes;
    let parents: Vec<_> = lanes.iter().map(|lane| lane.parent).collect();
    assert_eq!(parents, [None, Some(LANE_BASE), None]);
    let tids: Vec<_> = rows(lanes.iter()).iter().map(|span| span.tid).collect();
    assert_eq!(tids, [LANE_BASE, LANE_BASE, LANE_BASE + 2]);
}

#[test]
fn slots_that_overlap_are_taken_once() {
    let mut image = Image::new();
    image.line(0, b"line\n");
    image.state(0, 5, 0);
    for (slot, offset) in [(1, 3 * PAGE), (2, 2 * PAGE), (3, 3 * PAGE + 64)] {
        let (at, offset) = (256 + 16 * slot as usize, offset as u64);
        image.put(at, &offset.to_ne_bytes());
        image.put(at + 8, &4096u32.to_ne_bytes());
        let sum = layout::entry_sum(slot, offset, 4096);
        image.put(at + 12, &sum.to_ne_bytes());
        let key = layout::key(slot, 0);
        image.put(
            usize::try_from(offset).expect("small"),
            &layout::state(5, 0, key).to_ne_bytes(),
        );
        image.state(0, 5, 0);
    }
    let ring = image.recover().expect("a ring");
    assert_eq!((ring.slots.len(), ring.bad_slots.len()), (1, 3));
}

#[test]
fn a_site_table_too_large_is_not_read() {
    let mut image = Image::new();
    image.0.resize(20 << 20, 0);
    image.put(layout::SITES_BYTES_AT, &(17u32 << 20).to_ne_bytes());
    let sum = layout::header_sum(image.0.first_chunk().expect("longer"));
    image.put(layout::SUM_AT, &sum.to_ne_bytes());
    let head = RingHead::read(&image.0.as_slice()).expect("a ring");
    assert!(Sites::read(&image.0.as_slice(), &head).table.is_empty());
}

#[test]
fn labels_are_bounded_together() {
    let mut table = 28u16.to_ne_bytes().to_vec();
    table.extend_from_slice(br#""name":"step","cat":"worker""#);
    let mut sites = Sites {
        table,
        room: 60,
        bad_texts: Vec::new(),
    };
    let labels = [1, 1, 1].map(|site| sites.label(site).contains("step"));
    assert_eq!(labels, [true, true, false]);
}
