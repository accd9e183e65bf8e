//! The only permanent thread of ours in a process. It flushes what the others recorded, so that
//! they rarely have to write. It also repeats anchors, reports losses, and follows the control
//! file. The module `process/upkeep.rs` decides when a process gets it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::process::periodic::PeriodicRecords;
use crate::process::rate::{Rates, SHORTEST_NS};
use crate::process::reclaim::ProcessRef;
use crate::process::state::Process;
use crate::process::{flush, offload};
use crate::sys::wait::{self, PATIENCE_NS};
use crate::sys::{self, clock};

/// Minimum length in ns of a sleep that a thread may end when its ring fills up.
const LONG_NS: u64 = 2_000_000;
/// Time in ns for which threads that recorded at full speed together are expected to do so again.
const CROWDED_NS: u64 = 1_000_000_000;
/// Interval in ns at which the helper checks if the host's threads have ended.
const EXIT_CHECK_NS: u64 = 200_000_000;

/// Starts the recorder's helper thread, unless another thread has done so. Without it, recording
/// threads flush for themselves when their ring area is three quarters full, and at exit.
pub(crate) fn start(process: ProcessRef) {
    if process.helper_requested.swap(true, Ordering::AcqRel) {
        return;
    }
    let helped = process.clone();
    match sys::thread::spawn_quiet(sys::thread::HELPER, move || run(&helped)) {
        Ok(thread) => drop(process.helper.set(thread)), // set once, because only the first caller gets here
        Err(_) => process.helper_requested.store(false, Ordering::Release), // the next upkeep tries again
    }
}

fn run(process: &Process) {
    sys::thread::use_short_timer_slack();
    sys::prepare_barrier(); // no thread waits for this one
    let mut rates = Rates::new(&process.ring);
    let mut periodic = PeriodicRecords::new(rates.at_ns);
    let mut crowded_until = 0;
    let mut next_exit_check = rates.at_ns + EXIT_CHECK_NS;
    while !process.is_finished() {
        process.switches.apply_due(process);
        rates.measure(&process.ring);
        // A helper would slow down several threads at full speed, and would fetch their lines from
        // another processor's cache.
        if rates.fast_threads() > 1 {
            crowded_until = rates.at_ns + CROWDED_NS;
        }
        let crowded = rates.at_ns < crowded_until;
        process.crowded.store(crowded, Ordering::Relaxed);
        flush_all(process, |slot| crowded && rates.is_fast(slot));
        process.fragment.close_removed();
        periodic.record_due(process, rates.at_ns);
        if rates.at_ns >= next_exit_check {
            next_exit_check = rates.at_ns + EXIT_CHECK_NS;
            if let Some(code) = sys::threads::only_helpers_are_left() {
                process.flush_until(clock::now_ns() + PATIENCE_NS);
                return offload::exit_as_last_thread(code);
            }
        }
        rates = pause(process, rates, crowded);
    }
}

/// Lets the helper thread sleep until it has something to do. Returns the measured speeds of the
/// recording threads, which are new if one of them ended the sleep.
fn pause(process: &Process, rates: Rates, crowded: bool) -> Rates {
    let least_ns = if crowded { LONG_NS } else { 0 };
    let pause_ns = rates
        .pause_ns()
        .max(least_ns)
        .min(process.switches.pause_ns());
    match pause_ns {
        pause_ns if crowded => sys::thread::park_timeout(Duration::from_nanos(pause_ns)),
        pause_ns if pause_ns < SHORTEST_NS => {
            wait::until_true(clock::now_ns() + pause_ns, || false); // a wait this short only yields
        }
        pause_ns if sleep(process, pause_ns) => {
            // Woken by a thread in a hurry. Its speed shows in the next moment, not in the whole
            // sleep.
            flush_all(process, |_| false);
            let rates = Rates::new(&process.ring);
            sys::thread::park_timeout(Duration::from_nanos(SHORTEST_NS));
            return rates;
        }
        _ => {}
    }
    rates
}

/// Flushes every slot except those for which `flushes_itself` returns true, because their threads
/// flush them.
fn flush_all(process: &Process, flushes_itself: impl Fn(usize) -> bool) {
    for (index, slot) in process.ring.slots().enumerate() {
        if !flushes_itself(index) && !slot.is_empty() {
            flush::flush(slot, process);
            process.switches.apply_due(process); // a write may have taken long
        }
    }
}

/// Lets the helper thread sleep for `pause_ns`. Returns true if it was a long sleep and a thread
/// with a full ring area ended it.
fn sleep(process: &Process, pause_ns: u64) -> bool {
    let long = pause_ns >= LONG_NS;
    process.helper_sleeps.store(long, Ordering::Relaxed);
    sys::thread::park_timeout(Duration::from_nanos(pause_ns));
    long && !process.helper_sleeps.swap(false, Ordering::Relaxed)
}
