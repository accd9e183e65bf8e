//! Fragments and rings that are cut or changed at every byte: no panic, and only data that contains
//! the byte is lost.

use crate::full::is_full;
use crate::fuzzed;
use crate::invocation::{Merged, RunDir};
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Open, Process, Ring, Slot};
use std::collections::{BTreeMap, BTreeSet};

/// The first pid. All pids have five digits, so that the same byte is at the same offset in every
/// fragment.
const FIRST_PID: u32 = 10_000;

/// Returns a small fragment with every kind of record; the names of its events are
/// `<pid>/<number>`.
fn small(pid: u32) -> Fragment {
    let process = Process::new(pid);
    let on = process.main_thread();
    let span = |number: u64| on.span(1_000_000 + number, 5, &format!("{pid}/{number}"), "");
    let mut fragment = process.fragment();
    fragment.block(0, 0, &stream(&[process.anchor(1_000_000)]));
    let next = fragment.block(1, 0, &stream(&[span(0), span(1)]));
    fragment.line(&span(2));
    fragment.block(1, next, &stream(&[span(3)]));
    fragment
}

#[test]
fn a_fragment_cut_at_every_byte_loses_only_its_last_line() {
    let len = u32::try_from(small(FIRST_PID).bytes.len()).unwrap();
    let cuts: Vec<u32> = (0..=len).collect();
    for batch in cuts.chunks(200) {
        let make = || {
            let dir = RunDir::with_fragment(&small(99_999));
            for cut in batch {
                let mut fragment = small(FIRST_PID + cut);
                fragment.bytes.truncate(*cut as usize);
                fragment.write_here(&dir.fragments());
            }
            dir
        };
        fuzzed::check(&make, &format!("cut from {} on", batch[0]));
    }
}

/// Returns a fragment of `pid` with one flushed span, and a ring with two more and an open one.
fn with_ring(pid: u32) -> (Fragment, Ring) {
    let process = Process::with_ring(pid);
    let on = process.main_thread();
    let line = |number: u64| on.span(1_000_000 + number, 5, &format!("{pid}/{number}"), "");
    let mut fragment = process.fragment();
    let from = fragment.block(1, 0, &stream(&[line(0)]));
    let mut ring = Ring::new(&process);
    let site = ring.site("step", "worker");
    let open = Open {
        site,
        ..Open::named(2_000_000, "")
    };
    let slot = Slot {
        stream: stream(&[line(1), line(2)]),
        open: vec![open],
        ..Slot::flushed(pid, from)
    };
    ring.slots = vec![Slot::default(), slot];
    (fragment, ring)
}

/// Returns the number of events with each name, and the files that damage was found in.
fn survivors(merged: &Merged) -> (BTreeMap<String, usize>, BTreeSet<String>) {
    let mut counts = BTreeMap::new();
    for name in merged.trace.names() {
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    let damage = merged.report.damage().into_iter();
    (counts, damage.map(|damage| damage.0).collect())
}

/// Merges batches of rings changed by `spoil` at each of `offsets`. Flushed events must be there,
/// and none twice. If `is_detected` is true, a lost tail must be counted.
fn spoil_rings(offsets: &[usize], is_detected: bool, spoil: impl Fn(&mut Vec<u8>, usize)) {
    for batch in offsets.chunks(300) {
        let dir = RunDir::new();
        for (index, offset) in batch.iter().enumerate() {
            let pid = FIRST_PID + u32::try_from(index).unwrap();
            let (fragment, ring) = with_ring(pid);
            fragment.write_here(&dir.fragments());
            let mut bytes = ring.bytes();
            spoil(&mut bytes, *offset);
            std::fs::write(dir.fragments().join(format!("trace.{pid}.ring")), bytes).unwrap();
        }
        let (counts, damaged) = survivors(&dir.merge());
        for (index, offset) in batch.iter().enumerate() {
            let pid = FIRST_PID + u32::try_from(index).unwrap();
            let has = |number: u32| counts.get(&format!("{pid}/{number}")).copied();
            let [flushed, one, other] = [0, 1, 2].map(|number| has(number).unwrap_or(0));
            assert_eq!(flushed, 1, "spoiled at {offset}: what was flushed");
            assert!(one <= 1 && other <= 1, "spoiled at {offset}: doubled");
            let counted = |end: &str| damaged.contains(&format!("trace.{pid}.{end}"));
            let is_counted = ["jsonl", "ring"].into_iter().any(counted);
            let is_whole = one + other == 2;
            assert!(
                is_whole || is_counted || !is_detected,
                "spoiled at {offset}: a lost tail"
            );
        }
    }
}

#[test]
fn a_ring_cut_at_every_byte_loses_only_its_tail() {
    let len = with_ring(FIRST_PID).1.bytes().len();
    // Usually only at every eleventh byte.
    let offsets = (0..len).step_by(if is_full() { 1 } else { 11 });
    spoil_rings(&Vec::from_iter(offsets), true, Vec::truncate);
}

/// The ring has no checksum, so some changes look like a process that had recorded less.
#[test]
fn a_ring_changed_at_any_field_loses_only_its_tail() {
    let slot = with_ring(FIRST_PID).1.slot_offset(1);
    let offsets: Vec<usize> = (0..100)
        .chain(1024..1100)
        .chain(3072..3120)
        .chain(slot..slot + 200)
        .collect();
    for byte in [0x01, 0x80, 0xff] {
        spoil_rings(&offsets, false, |ring, offset| ring[offset] ^= byte);
    }
    for byte in [0x00, 0xff] {
        spoil_rings(&offsets, false, |ring, offset| ring[offset] = byte);
    }
}
