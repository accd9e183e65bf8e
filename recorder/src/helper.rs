//! The helper thread of a process: flushes what the others recorded, so that they rarely write; repeats anchors; tells losses.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::current::Using;
use crate::flush;
use crate::pace::{Pace, SHORTEST_NS};
use crate::preamble::block_anchor_line;
use crate::process::Process;
use crate::{clock, sys};

const ANCHOR_NS: u64 = 5_000_000_000;
const LOSSES_NS: u64 = 1_000_000_000;
/// A sleep that a thread may end when its ring fills.
const LONG_NS: u64 = 2_000_000;
/// Threads that recorded at full speed together are expected to do so again.
const CROWDED_NS: u64 = 1_000_000_000;

/// Starts the helper. Without one, threads flush for themselves when their ring is three quarters full, and at exit.
pub(crate) fn start(process: Using) {
    let helped = process.clone();
    if let Ok(thread) = sys::thread::spawn_quiet("sa-profile", move || run(&helped)) {
        let _ = process.helper.set(thread); // set once: there is one start
    }
}

fn run(process: &Process) {
    sys::thread::wake_punctually();
    let mut pace = Pace::new(process);
    let (mut next_anchor, mut next_losses) = (pace.at_ns + ANCHOR_NS, pace.at_ns + LOSSES_NS);
    // How far each slot was when the last anchor was read.
    let mut heads = BTreeMap::new();
    let mut last_anchor_ns = pace.at_ns;
    let mut crowded_until = 0;
    while !process.is_finished() {
        pace.measure(process);
        // A helper beside several threads at full speed takes their time, and their lines from another processor's cache.
        if pace.fast_threads() > 1 {
            crowded_until = pace.at_ns + CROWDED_NS;
        }
        let crowded = pace.at_ns < crowded_until;
        process.crowded.store(crowded, Ordering::Relaxed);
        flush_all(process, |slot| crowded && pace.is_fast(slot));
        process.fragment.close_removed();
        // While the file takes nothing, slot 0 must not fill up: it would give up its oldest records. Losses wait in their slots, as sums.
        let told = !process.is_refused();
        // Before an anchor: what explains the gaps in front of it stands in front of the next one.
        if told && pace.at_ns >= next_losses {
            process.tell_losses(pace.at_ns + LOSSES_NS);
            next_losses = pace.at_ns + LOSSES_NS;
        }
        if told && pace.at_ns >= next_anchor && has_written(process, &heads) {
            // In this order: what is open when the anchor is read was open before, or began after the last one was read.
            let open_ns = process.least_open_ns().min(last_anchor_ns);
            let late_ns = process.late.longest_ns();
            let (line, at_ns) = block_anchor_line(process.pid, open_ns, late_ns);
            process.tell(&line);
            last_anchor_ns = at_ns;
            let slots = process.ring.slots();
            heads = slots.map(|slot| (slot.index, slot.head())).collect();
            next_anchor = pace.at_ns + ANCHOR_NS;
        }
        let pause_ns = if crowded {
            pace.pause_ns().max(LONG_NS)
        } else {
            pace.pause_ns()
        };
        match pause_ns {
            pause_ns if crowded => std::thread::park_timeout(Duration::from_nanos(pause_ns)),
            pause_ns if pause_ns < SHORTEST_NS => stay_awake(pause_ns),
            pause_ns if sleep(process, pause_ns) => {
                // Woken by a thread in a hurry: how fast it is shows in the next moment, not in the whole sleep.
                flush_all(process, |_| false);
                pace = Pace::new(process);
                std::thread::park_timeout(Duration::from_nanos(SHORTEST_NS));
            }
            _ => {}
        }
    }
}

/// Flushes every slot but those whose threads do so themselves.
fn flush_all(process: &Process, flushes_itself: impl Fn(usize) -> bool) {
    for (index, slot) in process.ring.slots().enumerate() {
        if !flushes_itself(index) && !slot.is_empty() {
            flush::flush(slot, process);
        }
    }
}

/// Whether each slot is in the file up to where it was: readers look for a time between two anchors (FORMAT.md §2.2).
fn has_written(process: &Process, heads: &BTreeMap<u32, u64>) -> bool {
    process.ring.slots().all(|slot| {
        let head = heads.get(&slot.index).copied().unwrap_or(0);
        slot.flushed().load(Ordering::Acquire) >= head
    })
}

/// Sleeps; tells whether a thread ended a long sleep.
fn sleep(process: &Process, pause_ns: u64) -> bool {
    let long = pause_ns >= LONG_NS;
    process.helper_sleeps.store(long, Ordering::Relaxed);
    std::thread::park_timeout(Duration::from_nanos(pause_ns));
    long && !process.helper_sleeps.swap(false, Ordering::Relaxed)
}

/// Lets others run until it is time.
fn stay_awake(pause_ns: u64) {
    let end = clock::now_ns() + pause_ns;
    while clock::now_ns() < end {
        std::thread::yield_now();
    }
}
