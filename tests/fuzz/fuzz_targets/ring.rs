//! Reads a ring that is inconsistent and changes meanwhile. There is no panic, and the recovered data is consistent.
//!
//! Magic numbers and offsets are hard to guess, so the input is a list of edits of a small valid ring. Half of them are applied
//! at first, the others one by one while the reader reads, like writes of a live process.
#![no_main]

use std::cell::RefCell;

use format_oracle::writer::line::stream;
use format_oracle::writer::{Lane, Open, Process, Ring as Written, Slot};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use trace_merge::ring::{OpenSpan, Ring, RingBytes, recover, shown_lanes};

const SLOTS: usize = 2;
const EDIT_BYTES: usize = 10;

fuzz_target!(|data: &[u8]| {
    if let Some(ring) = recover(&data) {
        check(&ring);
    }
    let live = Live::new(data);
    if let Some(ring) = recover(&live) {
        check(&ring);
    }
});

/// A ring in memory with the edits that are applied later.
struct Live(RefCell<(Vec<u8>, Vec<[u8; EDIT_BYTES]>)>);

impl Live {
    fn new(edits: &[u8]) -> Self {
        let mut bytes = valid_ring();
        let mut later = Vec::new();
        for edit in edits.chunks_exact(EDIT_BYTES) {
            let edit: [u8; EDIT_BYTES] = edit.try_into().expect("chunks are of this size");
            if edit[1] & 0x80 == 0 {
                apply(&mut bytes, edit)
            } else {
                later.push(edit)
            }
        }
        later.reverse();
        Live(RefCell::new((bytes, later)))
    }
}

impl RingBytes for Live {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        let (bytes, later) = &mut *self.0.borrow_mut();
        if let Some(edit) = later.pop() {
            apply(bytes, edit);
        }
        bytes.as_slice().read(offset, buffer)
    }

    fn len(&self) -> u64 {
        self.0.borrow().0.len() as u64
    }
}

/// Writes the edit's last eight bytes to the offset in its first two.
fn apply(bytes: &mut [u8], edit: [u8; EDIT_BYTES]) {
    let at = usize::from(u16::from_le_bytes([edit[0], edit[1] & 0x7f]));
    if let Some(place) = bytes.get_mut(at..at + 8) {
        place.copy_from_slice(&edit[2..]);
    }
}

/// Creates a ring with two slots that contain lines and open spans, a call site, and two lanes.
fn valid_ring() -> Vec<u8> {
    let process = Process::with_ring(4711);
    let mut ring = Written::new(&process);
    let site = ring.site("step", "worker");
    let open = |site, start_ns| Open {
        start_ns,
        site,
        name: "begun".to_owned(),
    };
    let inner = Lane {
        parent: 1,
        ..Lane::open(1, open(site, 1_000_001))
    };
    ring.lanes = vec![Lane::open(0, open(site, 1_000_000)), inner];
    let line = process.main_thread().instant(5_000, "a", "");
    let slot = Slot {
        tid: 4712,
        stream: stream(&[line]),
        open: vec![open(site, 1_000_000), open(0, 1_000_000)],
        ..Slot::default()
    };
    ring.slots = vec![slot; SLOTS];
    ring.bytes()
}

fn check(ring: &Ring) {
    for slot in &ring.slots {
        assert_eq!(
            slot.head - slot.from,
            slot.bytes.len() as u64,
            "the bytes span `from` to `head`"
        );
        slot.open.iter().for_each(check_span);
    }
    let lanes = shown_lanes(ring.lanes.iter());
    assert_eq!(lanes.len(), ring.lanes.len());
    assert!(lanes.is_sorted_by_key(|span| span.start_ns));
    lanes.iter().for_each(check_span);
}

fn check_span(span: &OpenSpan) {
    let object = format!("{{{}}}", span.label);
    let label: Map<String, Value> = serde_json::from_str(&object).expect("a label is JSON members");
    assert!(
        label.len() == 2 && label.values().all(Value::is_string),
        "{object}"
    );
    assert!(span.start_ns > 0 && span.tid > 0);
}
