use super::*;
use sa_recorder::format::LANE_BASE;

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
fn recovers_lines_across_the_wrap() {
    let mut image = Image::new();
    let from = 3 * SIZE as u64 - 5;
    image.line(from, b"0123456789\n");
    image.state(from, from + 11, 0);
    let ring = image.recover().expect("a ring");
    assert_eq!((ring.pid, ring.nonce), (4711, 0x1234));
    assert_eq!(ring.slots[0].bytes, b"0123456789\n");
    assert_eq!((ring.slots[0].from, ring.slots[0].head), (from, from + 11));
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

#[test]
fn a_lane_is_closed_once_the_closing_line_is_published() {
    let mut image = Image::new();
    image.entry(2 * PAGE, 1000, 1);
    image.put(2 * PAGE + layout::LANE_CLOSES_AT, &8u64.to_ne_bytes());
    image.state(0, 7, 0);
    assert_eq!(image.recover().expect("a ring").lanes.len(), 1);
    image.state(0, 8, 0);
    assert_eq!(image.recover().expect("a ring").lanes.len(), 0);
}

/// A span on lane 2²² + `lane`, within that of `parent`.
fn open_lane(lane: u32, start_ns: u64, parent: Option<u32>) -> OpenLane {
    OpenLane {
        span: OpenSpan {
            tid: LANE_BASE + lane,
            start_ns,
            label: String::new(),
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
fn a_span_is_shown_on_the_row_of_the_outermost_one() {
    let lanes = [
        open_lane(0, 30, Some(2)),
        open_lane(1, 10, None),
        open_lane(2, 20, Some(1)),
        open_lane(3, 40, Some(9)),
    ];
    assert_eq!(shown(&lanes), [(1, 10), (1, 20), (1, 30), (3, 40)]);
    let without_the_first = [lanes[0].clone(), lanes[2].clone()];
    assert_eq!(shown(&without_the_first), [(2, 20), (2, 30)]);
}

#[test]
fn a_lane_that_was_taken_again_is_no_parent() {
    let lanes = [open_lane(0, 50, None), open_lane(1, 20, Some(0))];
    assert_eq!(shown(&lanes), [(1, 20), (0, 50)]);
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
fn nonsense_costs_only_its_slot() {
    for (flushed, head) in [
        (9, 8),
        (0, SIZE as u64 + 1),
        (u64::MAX, 0),
        (0, u64::MAX >> 16),
    ] {
        let mut image = Image::new();
        image.state(flushed, head, 0);
        let ring = image.recover().expect("a ring");
        assert_eq!(
            (ring.slots.len(), ring.bad_slots.len()),
            (0, 1),
            "{flushed} {head}"
        );
    }
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
fn ranges_are_taken_once() {
    let mut taken = Extents::default();
    for (range, free) in [
        (10..20, true),
        (20..30, true),
        (0..10, true),
        (5..6, false),
        (29..40, false),
        (0..100, false),
        (30..31, true),
    ] {
        assert_eq!(taken.take(range.clone()).is_some(), free, "{range:?}");
    }
}

#[test]
fn a_site_table_too_large_is_not_read() {
    let mut image = Image::new();
    image.0.resize(20 << 20, 0);
    image.put(layout::SITES_BYTES_AT, &(17u32 << 20).to_ne_bytes());
    let sum = layout::header_sum(image.0.first_chunk().expect("longer"));
    image.put(layout::SUM_AT, &sum.to_ne_bytes());
    let head = Head::read(&image.0.as_slice()).expect("a ring");
    assert!(head.sites(&image.0.as_slice()).table.is_empty());
}

#[test]
fn labels_are_bounded_together() {
    let mut table = 28u16.to_ne_bytes().to_vec();
    table.extend_from_slice(br#""name":"step","cat":"worker""#);
    let mut sites = Sites { table, room: 60 };
    let labels = [1, 1, 1].map(|site| sites.label(site).contains("step"));
    assert_eq!(labels, [true, true, false]);
}

#[test]
fn no_changed_or_cut_byte_panics() {
    let mut image = Image::new();
    image.line(0, b"line\n");
    image.state(0, 5, 1);
    image.entry(3 * PAGE + layout::SLOT_STACK_AT, 1000, 1);
    for end in (0..image.0.len()).step_by(7) {
        let _ = recover(&&image.0[..end]);
    }
    let marked = (0..512)
        .chain(PAGE..PAGE + 64)
        .chain(2 * PAGE..2 * PAGE + 64)
        .chain(3 * PAGE..3 * PAGE + 128);
    for at in marked {
        for value in [0, 1, 0x7f, 0xff] {
            let kept = std::mem::replace(&mut image.0[at], value);
            let _ = image.recover();
            image.0[at] = kept;
        }
    }
    assert_eq!(
        image.recover().expect("unchanged").slots[0].bytes,
        b"line\n"
    );
}
