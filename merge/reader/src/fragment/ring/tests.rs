use super::*;
use sa_format::LANE_BASE;
use std::cell::Cell;

const PAGE: usize = 4096;
const SIZE: u32 = 4096;
/// Offsets of the directory, the lanes, the slot's control page, its stack, and its text area.
const DIRECTORY: usize = 256;
const LANES: usize = 2 * PAGE;
const SLOT: usize = 3 * PAGE;
const STACK: usize = SLOT + layout::SLOT_STACK_AT;
const TEXTS: usize = SLOT - 1024;
const SITE: &str = r#""name":"step","cat":"worker""#;

/// A ring with one slot and one lane, as FORMAT.md describes it.
struct Image(Vec<u8>);

impl Image {
    /// Creates a ring with `depth` open spans in its slot.
    fn new(depth: u64) -> Image {
        let mut image = Image(vec![0; SLOT + PAGE + SIZE as usize]);
        image.put(0, layout::MAGIC);
        for (at, word) in [
            (layout::VERSION_AT, 1),
            (layout::PAGE_BYTES_AT, 4096),
            (layout::PID_AT, 4711),
            (layout::SITES_OFFSET_AT, 4096),
            (layout::SITES_BYTES_AT, 4096),
            (layout::LANES_OFFSET_AT, 8192),
            (layout::LANES_COUNT_AT, 1),
            (layout::DIRECTORY_OFFSET_AT, 256),
            (layout::DIRECTORY_COUNT_AT, 4),
            (SLOT + layout::SLOT_TID_AT, 4712),
        ] {
            image.put(at, u32::to_ne_bytes(word));
        }
        image.put(layout::NONCE_AT, 0x1234u64.to_ne_bytes());
        image.put(PAGE, 28u16.to_ne_bytes());
        image.put(PAGE + 2, SITE);
        image.directory(DIRECTORY, 0, SLOT, SIZE);
        image.sign();
        image.state(0, depth);
        image
    }

    /// Creates the same ring, with texts at `areas`.
    fn with_texts(depth: u64, areas: layout::TextAreas) -> Image {
        let mut image = Image::new(depth);
        image.put(layout::TEXT_AREAS_AT, areas.fields());
        image
    }

    fn put(&mut self, at: usize, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn sign(&mut self) {
        let sum = layout::header_sum(self.0.first_chunk().expect("longer"));
        self.put(layout::SUM_AT, sum.to_ne_bytes());
    }

    fn directory(&mut self, at: usize, number: u32, offset: usize, size: u32) {
        let sum = layout::entry_sum(number, offset as u64, size);
        self.put(at, (offset as u64).to_ne_bytes());
        self.put(at + layout::ENTRY_SIZE_AT, size.to_ne_bytes());
        self.put(at + layout::ENTRY_SUM_AT, sum.to_ne_bytes());
    }

    fn state(&mut self, head: u64, depth: u64) {
        let state = layout::state(head, depth, layout::key(0, 0));
        self.put(SLOT + layout::SLOT_STATE_AT, state.to_ne_bytes());
    }

    fn entry(&mut self, at: usize, start_ns: u64, site: u32) {
        self.put(at, start_ns.to_ne_bytes());
        self.put(at + layout::OPEN_SITE_AT, site.to_ne_bytes());
    }

    /// Puts the name of a span without a call site into an entry of the stack.
    fn name(&mut self, at: usize, name: &[u8], len: u32) {
        self.put(at + layout::OPEN_NAME_LEN_AT, len.to_ne_bytes());
        self.put(at + layout::STACK_NAME_AT, name);
    }

    /// Puts name and args of a span into `area`, and refers to them in the entry.
    fn text(&mut self, entry: usize, area: usize, at: usize, (names, args): (&str, &str)) {
        self.put(area + at, [names, args].concat());
        let word = layout::pack_span_text(at, names.len(), args.len());
        self.put(entry + layout::OPEN_TEXT_AT, word.to_ne_bytes());
    }

    fn recover(&self) -> Ring {
        recover(&self.0.as_slice()).expect("a ring")
    }

    /// Returns label and args of each span that is open in the slot.
    fn open(&self) -> Vec<(String, String)> {
        let open = self.recover().slots.remove(0).open.into_iter();
        open.map(|span| (span.label, span.args)).collect()
    }
}

fn slot_areas() -> layout::TextAreas {
    layout::TextAreas {
        slot_bytes: 1024,
        ..layout::TextAreas::default()
    }
}

/// The spans have a call site, a name that was cut within a character, and texts with names and args.
#[test]
fn issue_19_open_spans_have_their_names_and_args() {
    let mut image = Image::with_texts(4, slot_areas());
    let entry = |nth: usize| STACK + nth * layout::OPEN_ENTRY_BYTES;
    (0..4).for_each(|nth| image.entry(entry(nth), 1000 + nth as u64, [1, 0, 1, 0][nth]));
    image.name(entry(1), b"a\"b\xc3", 4);
    let (names, args) = (r#""name":"a","cat":"b""#, r#""id":"x","n":[1]"#);
    image.text(entry(2), TEXTS, 3, ("", args));
    image.text(entry(3), TEXTS, 100, (names, args));
    let quoted = r#""name":"a\"b","cat":"""#;
    let expected = [(SITE, ""), (quoted, ""), (SITE, args), (names, args)]
        .map(|(label, args)| (label.to_owned(), args.to_owned()));
    assert_eq!(image.open(), expected);
    let ring = image.recover();
    assert!(ring.bad_texts.is_empty());
    let last = &ring.slots[0].open[3];
    assert_eq!((last.tid, last.start_ns), (4712, 1003));
    // Without text areas, or with an invalid checksum, the names in the entries are used.
    let mut damaged = slot_areas().fields();
    damaged[3] ^= 1;
    let none = r#""name":"","cat":"""#;
    let names = [SITE, quoted, SITE, none].map(|label| (label.to_owned(), String::new()));
    for fields in [[0; layout::TEXT_AREAS_BYTES], damaged] {
        image.put(layout::TEXT_AREAS_AT, fields);
        assert_eq!(image.open(), names);
        assert!(image.recover().bad_texts.is_empty());
    }
}

#[test]
fn issue_19_an_invalid_text_is_counted_and_not_shown() {
    let long = [b'['; 200];
    let bad: [(usize, &[u8]); 8] = [
        (0, b"\"a\":1,"),
        (0, b"\"a\":1},{\"b\":2"),
        (0, b"\"a\":\xff"),
        (0, b"\"a\":\n1"),
        (0, b"x"),
        (0, &long),
        (1022, b"\"a\":1"),
        (u32::MAX as usize, b"\"a\":1"),
    ];
    for (at, args) in bad {
        let mut image = Image::with_texts(1, slot_areas());
        image.entry(STACK, 1000, 1);
        let word = layout::pack_span_text(at, 0, args.len());
        image.put(STACK + layout::OPEN_TEXT_AT, word.to_ne_bytes());
        image.put(TEXTS, if at == 0 { args } else { b"" });
        let ring = image.recover();
        let open = &ring.slots[0].open[0];
        assert_eq!((open.start_ns, open.args.as_str()), (1000, ""), "{args:?}");
        assert_eq!(ring.bad_texts, [(TEXTS + at) as u64], "{args:?}");
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
        let mut image = Image::with_texts(0, areas);
        image.directory(512, 0, LANES + 512, size);
        image.entry(LANES, 1000, 1);
        image.text(LANES, LANES + 512, 0, ("", args));
        assert_eq!(image.recover().lanes[0].span.args, expected);
    }
}

/// A ring whose first entry has a different start time when it is read again.
struct Live(Vec<u8>, Cell<bool>);

impl RingBytes for Live {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        self.0.as_slice().read(offset, buffer)?;
        if offset == STACK as u64 && self.1.replace(true) {
            buffer[0] ^= 1;
        }
        Some(())
    }

    fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

#[test]
fn issue_19_the_text_of_an_entry_that_changed_meanwhile_does_not_count() {
    let mut image = Image::with_texts(1, slot_areas());
    image.entry(STACK, 1000, 1);
    image.text(STACK, TEXTS, 0, ("", r#""a":1"#));
    let ring = recover(&Live(image.0, Cell::new(false))).expect("a ring");
    assert_eq!(ring.slots[0].open[0].args, "");
    assert!(ring.bad_texts.is_empty(), "nor is it damage");
}

#[test]
fn issue_47_a_span_below_others_is_closed_once_its_line_is_published() {
    let mut image = Image::new(3);
    for (depth, start_ns) in (0..).zip([1000, 2000, 3000]) {
        image.entry(STACK + depth * layout::OPEN_ENTRY_BYTES, start_ns, 1);
    }
    let ending = layout::ending(7, 1).to_ne_bytes();
    image.put(SLOT + layout::SLOT_ENDING_AT, ending);
    for (head, expected) in [(7, &[1000, 2000, 3000][..]), (8, &[1000, 3000])] {
        image.state(head, 3);
        let open = image.recover().slots.remove(0).open;
        assert!(open.iter().map(|span| &span.start_ns).eq(expected));
    }
}

#[test]
fn a_span_is_shown_on_the_lane_of_its_outermost_parent() {
    // Start time of each lane and number of its parent plus 1; then the lanes on which the spans are shown, sorted by start time.
    for (lanes, expected) in [
        ([(1000, 0), (1001, 1), (1002, u32::MAX)], [0, 0, 2]),
        ([(1000, 2), (1000, 1), (1000, 3)], [0, 1, 2]),
        ([(1002, 2), (1001, 1), (1001, 1)], [1, 2, 1]),
    ] {
        let mut image = Image::new(0);
        image.put(layout::LANES_COUNT_AT, 3u32.to_ne_bytes());
        image.sign();
        for (lane, (start_ns, parent)) in lanes.into_iter().enumerate() {
            let at = LANES + lane * layout::OPEN_ENTRY_BYTES;
            image.entry(at, start_ns, 1);
            image.put(at + layout::LANE_PARENT_AT, parent.to_ne_bytes());
        }
        let found = shown_lanes(image.recover().lanes.iter());
        let tids = found.iter().map(|span| span.tid);
        assert!(
            tids.eq(expected.map(|lane| LANE_BASE + lane)),
            "{lanes:?}: {found:?}"
        );
    }
}

#[test]
fn overlapping_slots_are_read_once() {
    let mut image = Image::new(0);
    image.put(SLOT + PAGE, b"line\n");
    for (slot, offset) in [(1, SLOT), (2, LANES), (3, SLOT + 64)] {
        image.directory(DIRECTORY + 16 * slot as usize, slot, offset, SIZE);
        let state = layout::state(5, 0, layout::key(slot, 0));
        image.put(offset, state.to_ne_bytes());
    }
    image.state(5, 0);
    let ring = image.recover();
    assert_eq!((ring.slots.len(), ring.bad_slots.len()), (1, 3));
}

#[test]
fn sites_are_bounded_each_and_together() {
    let mut image = Image::new(0);
    image.0.resize(20 << 20, 0);
    image.put(layout::SITES_BYTES_AT, (17u32 << 20).to_ne_bytes());
    image.sign();
    let head = RingHead::read(&image.0.as_slice()).expect("a ring");
    assert!(Sites::read(&image.0.as_slice(), &head).table.is_empty());
    let mut sites = Sites {
        table: [&28u16.to_ne_bytes()[..], SITE.as_bytes()].concat(),
        room: 60,
        bad_texts: Vec::new(),
    };
    let labels = [1, 1, 1].map(|site| sites.label(site).contains("step"));
    assert_eq!(labels, [true, true, false]);
}
