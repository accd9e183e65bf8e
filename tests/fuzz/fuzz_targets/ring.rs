//! A ring that lies and changes while it is read: never a panic, and what is recovered makes sense in itself.
//!
//! Magic numbers and offsets are hard to guess, so the input is a list of edits of a small valid ring: half of them are there from the
//! start, the others come one by one while the reader reads, as a live writer's would.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use sa_format::ring as layout;
use serde_json::{Map, Value};
use trace_merge::ring::{OpenSpan, Ring, RingBytes, recover, rows};

const PAGE: usize = 4096;
const RING_BYTES: usize = 4096;
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

/// A ring in memory and the edits still to come.
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

/// Puts the edit's last eight bytes where its first two say.
fn apply(bytes: &mut [u8], edit: [u8; EDIT_BYTES]) {
    let at = usize::from(u16::from_le_bytes([edit[0], edit[1] & 0x7f]));
    if let Some(place) = bytes.get_mut(at..at + 8) {
        place.copy_from_slice(&edit[2..]);
    }
}

/// Two slots with lines and open spans, a site, a lane.
fn valid_ring() -> Vec<u8> {
    let mut ring = vec![0; PAGE + SLOTS * (layout::SLOT_CONTROL_BYTES + RING_BYTES)];
    ring[..8].copy_from_slice(&layout::MAGIC);
    let site = br#""name":"step","cat":"worker""#;
    let (sites, lanes, directory) = (1024, 2048, 3072);
    for (at, value) in [
        (layout::VERSION_AT, 1),
        (layout::PAGE_BYTES_AT, PAGE),
        (layout::PID_AT, 4711),
        (layout::SITES_OFFSET_AT, sites),
        (layout::SITES_BYTES_AT, 1024),
        (layout::LANES_OFFSET_AT, lanes),
        (layout::LANES_COUNT_AT, 4),
        (layout::DIRECTORY_OFFSET_AT, directory),
        (layout::DIRECTORY_COUNT_AT, 8),
    ] {
        put_u32(&mut ring, at, value);
    }
    ring[sites..sites + 2].copy_from_slice(&28_u16.to_ne_bytes());
    ring[sites + 2..sites + 2 + site.len()].copy_from_slice(site);
    put_open(&mut ring, lanes, 1);
    put_open(&mut ring, lanes + layout::OPEN_ENTRY_BYTES, 1);
    put_u64(&mut ring, lanes + layout::OPEN_ENTRY_BYTES, 1_000_001);
    put_u32(
        &mut ring,
        lanes + layout::OPEN_ENTRY_BYTES + layout::LANE_PARENT_AT,
        1,
    );
    for slot in 0..SLOTS {
        let at = PAGE + slot * (layout::SLOT_CONTROL_BYTES + RING_BYTES);
        put_u64(
            &mut ring,
            directory + slot * layout::DIRECTORY_ENTRY_BYTES,
            at as u64,
        );
        put_u32(
            &mut ring,
            directory + slot * layout::DIRECTORY_ENTRY_BYTES + 8,
            RING_BYTES,
        );
        let sum = layout::entry_sum(slot as u32, at as u64, RING_BYTES as u32);
        put_u32(
            &mut ring,
            directory + slot * layout::DIRECTORY_ENTRY_BYTES + layout::ENTRY_SUM_AT,
            sum as usize,
        );
        put_slot(&mut ring, at, slot as u32);
    }
    let sum = layout::header_sum(ring.first_chunk().expect("longer"));
    put_u32(&mut ring, layout::SUM_AT, sum as usize);
    ring
}

fn put_slot(ring: &mut [u8], at: usize, slot: u32) {
    let line = b"{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":5.000,\"s\":\"t\",\"name\":\"a\",\"cat\":\"\"}\n";
    let data = at + layout::SLOT_CONTROL_BYTES;
    ring[data..data + line.len()].copy_from_slice(line);
    put_u64(
        ring,
        at + layout::SLOT_STATE_AT,
        layout::state(line.len() as u64, 2, layout::key(slot, 0)),
    );
    put_u32(ring, at + layout::SLOT_TID_AT, 4712);
    put_open(ring, at + layout::SLOT_STACK_AT, 1);
    put_open(
        ring,
        at + layout::SLOT_STACK_AT + layout::OPEN_ENTRY_BYTES,
        0,
    );
}

fn put_open(ring: &mut [u8], at: usize, site: usize) {
    put_u64(ring, at + layout::OPEN_START_AT, 1_000_000);
    put_u32(ring, at + layout::OPEN_SITE_AT, site);
    put_u32(ring, at + layout::OPEN_NAME_LEN_AT, 5);
}

fn put_u32(ring: &mut [u8], at: usize, value: usize) {
    let value = u32::try_from(value).expect("a small number");
    ring[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

fn put_u64(ring: &mut [u8], at: usize, value: u64) {
    ring[at..at + 8].copy_from_slice(&value.to_ne_bytes());
}

fn check(ring: &Ring) {
    for slot in &ring.slots {
        assert_eq!(
            slot.head - slot.from,
            slot.bytes.len() as u64,
            "the bytes are those from `from` to `head`"
        );
        slot.open.iter().for_each(check_span);
    }
    let lanes = rows(ring.lanes.iter());
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
