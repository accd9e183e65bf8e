//! The helper thread of a process: flushes what the others recorded, so that they rarely write; repeats anchors; tells losses.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::flush::{self, Outcome};
use crate::fragment::anchor_line;
use crate::process::Process;
use crate::{clock, sys};

const ANCHOR_NS: u64 = 5_000_000_000;
const LOSSES_NS: u64 = 1_000_000_000;
const IDLE_NS: u64 = 250_000_000;
/// Bytes that a thread's ring should hold when the helper wakes.
const GOAL_BYTES: u64 = 32 << 10;
/// A shorter sleep ends too late for threads that record at full speed: waking a sleeping processor takes as long.
const SHORTEST_NS: u64 = 100_000;
/// A sleep that a thread may end when its ring fills.
const LONG_NS: u64 = 2_000_000;

/// Starts the helper. Without one, threads flush for themselves when their ring is three quarters full, and at exit.
pub(crate) fn start(process: &'static Process) {
    if let Ok(thread) = sys::thread::spawn_quiet("sa-profile", move || run(process)) {
        let _ = process.helper.set(thread); // set once: there is one start
    }
}

fn run(process: &'static Process) {
    sys::thread::wake_punctually();
    let mut last = clock::now_ns();
    let (mut next_anchor, mut next_losses) = (last + ANCHOR_NS, last + LOSSES_NS);
    while !process.is_finished() {
        let now = clock::now_ns();
        let (most, busy) = flush_all(process);
        if now >= next_anchor {
            process.tell(&anchor_line(process.pid));
            next_anchor = now + ANCHOR_NS;
        }
        if now >= next_losses {
            process.tell_losses();
            next_losses = now + LOSSES_NS;
        }
        sleep(process, pause_ns(most, now - last), busy);
        last = now;
    }
}

/// Flushes every slot; returns the most bytes one had, and how many had any.
fn flush_all(process: &Process) -> (u64, usize) {
    let (mut most, mut busy) = (0, 0);
    for slot in process.ring.slots() {
        let flushed = slot.flushed().load(Ordering::Relaxed);
        let waiting = slot.head().saturating_sub(flushed);
        if waiting > 0 && flush::flush(slot, &process.fragment, process.pid, true) == Outcome::Done
        {
            most = most.max(waiting);
            busy += 1;
        }
    }
    (most, busy)
}

/// How long to sleep so that a thread that goes on as before fills a small part of its ring: `most` bytes came in `elapsed_ns`.
fn pause_ns(most: u64, elapsed_ns: u64) -> u64 {
    let pause = elapsed_ns.saturating_mul(GOAL_BYTES).checked_div(most);
    pause.unwrap_or(IDLE_NS).min(IDLE_NS)
}

fn sleep(process: &Process, pause_ns: u64, busy: usize) {
    // Beside several threads at full speed a helper that stays awake takes their time.
    if pause_ns < SHORTEST_NS && busy == 1 {
        return stay_awake(pause_ns);
    }
    let long = pause_ns >= LONG_NS;
    process.helper_sleeps.store(long, Ordering::Relaxed);
    std::thread::park_timeout(Duration::from_nanos(pause_ns));
    process.helper_sleeps.store(false, Ordering::Relaxed);
}

/// Lets others run until it is time.
fn stay_awake(pause_ns: u64) {
    let end = clock::now_ns() + pause_ns;
    while clock::now_ns() < end {
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_follows_the_rate() {
        assert_eq!(pause_ns(0, 1_000_000), IDLE_NS);
        assert_eq!(pause_ns(GOAL_BYTES, 1_000_000), 1_000_000);
        assert_eq!(pause_ns(4 * GOAL_BYTES, 80_000), 20_000);
        assert_eq!(pause_ns(1, IDLE_NS), IDLE_NS);
    }
}
