//! A small ring of one slot.

use super::process::RING_BYTES;
use sa_format::ring as layout;

const PAGE: usize = 4096;
const SITES: usize = 1024;
const LANES: usize = 2048;
const DIRECTORY: usize = 3072;

/// The ring of a process that ended with `kept` not yet flushed, from a position on, and with spans open.
pub(crate) fn ring(pid: u32, nonce: u64, (from, kept): (u64, &[u8]), open: &[u64]) -> Vec<u8> {
    let mut ring = vec![0; PAGE + layout::SLOT_CONTROL_BYTES + RING_BYTES];
    ring[..8].copy_from_slice(&layout::MAGIC);
    put(&mut ring, layout::NONCE_AT, &nonce.to_ne_bytes());
    for (at, value) in [
        (layout::VERSION_AT, 1),
        (layout::PAGE_BYTES_AT, PAGE),
        (layout::PID_AT, pid as usize),
        (layout::SITES_OFFSET_AT, SITES),
        (layout::SITES_BYTES_AT, 1024),
        (layout::LANES_OFFSET_AT, LANES),
        (layout::LANES_COUNT_AT, 4),
        (layout::DIRECTORY_OFFSET_AT, DIRECTORY),
        (layout::DIRECTORY_COUNT_AT, 8),
        (DIRECTORY, PAGE),
        (DIRECTORY + layout::ENTRY_SIZE_AT, RING_BYTES),
    ] {
        put_u32(&mut ring, at, value);
    }
    let sum = layout::entry_sum(0, PAGE as u64, u32::try_from(RING_BYTES).expect("small"));
    put(
        &mut ring,
        DIRECTORY + layout::ENTRY_SUM_AT,
        &sum.to_ne_bytes(),
    );
    let sum = layout::header_sum(ring.first_chunk().expect("longer"));
    put(&mut ring, layout::SUM_AT, &sum.to_ne_bytes());
    put_slot(&mut ring, (from, kept), open);
    put_u32(&mut ring, PAGE + layout::SLOT_TID_AT, pid as usize);
    ring
}

fn put_slot(ring: &mut [u8], (from, kept): (u64, &[u8]), open: &[u64]) {
    let head = from + kept.len() as u64;
    let state = layout::state(head, open.len() as u64, layout::key(0, 0));
    put(ring, PAGE + layout::SLOT_STATE_AT, &state.to_ne_bytes());
    put(ring, PAGE + layout::SLOT_FLUSHED_AT, &from.to_ne_bytes());
    for (depth, start_ns) in open.iter().enumerate() {
        let at = PAGE + layout::SLOT_STACK_AT + depth * layout::OPEN_ENTRY_BYTES;
        put(ring, at + layout::OPEN_START_AT, &start_ns.to_ne_bytes());
        put_u32(ring, at + layout::OPEN_NAME_LEN_AT, 4);
        put(ring, at + layout::STACK_NAME_AT, b"open");
    }
    let data = PAGE + layout::SLOT_CONTROL_BYTES;
    for (position, byte) in (from..).zip(kept) {
        let within = usize::try_from(position % RING_BYTES as u64).expect("small");
        ring[data + within] = *byte;
    }
}

fn put(ring: &mut [u8], at: usize, bytes: &[u8]) {
    ring[at..at + bytes.len()].copy_from_slice(bytes);
}

fn put_u32(ring: &mut [u8], at: usize, value: usize) {
    let value = u32::try_from(value).expect("a small number");
    put(ring, at, &value.to_ne_bytes());
}
