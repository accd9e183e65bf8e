//! How long before now the spans began that are not in the file yet. With this, a reader that searches for a time knows where it may stop.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::format::ring::STACK_DEPTH;
use crate::ring::file::Ring;
use crate::ring::slot::Slot;
use crate::sys::clock::now_ns;

/// The longest time between the begin of what was recorded only afterwards, and when it was.
#[derive(Debug, Default)]
pub(crate) struct OpenHorizon(AtomicU64);

impl OpenHorizon {
    /// Something that began at `start_ns` is about to be recorded, and was not open in the ring until then.
    pub(crate) fn note(&self, start_ns: u64) {
        let late_ns = now_ns().saturating_sub(start_ns);
        if late_ns > self.0.load(Ordering::Relaxed) {
            self.0.fetch_max(late_ns, Ordering::Relaxed);
        }
    }

    pub(crate) fn longest_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The least start of all spans that are open on threads and lanes; the largest number if none is.
pub(crate) fn least_open_ns(ring: &Ring) -> u64 {
    let threads = ring.slots().map(least_on_stack);
    let lanes = ring.lane_entries();
    let lanes = lanes.map(|(_, entry)| entry.start().load(Ordering::Acquire));
    let lanes = lanes.filter(|start_ns| *start_ns != 0);
    threads.chain(lanes).min().unwrap_or(u64::MAX)
}

/// The entries hold the outermost spans; 0 if none of them is open and a deeper one is.
fn least_on_stack(slot: &Slot) -> u64 {
    let depth = slot.depth();
    let entries = (0..depth.min(STACK_DEPTH)).filter_map(|at| slot.stack_entry(at));
    let starts = entries.map(|entry| entry.start().load(Ordering::Acquire));
    let least = starts.filter(|start_ns| *start_ns != 0).min();
    least.unwrap_or(if depth > STACK_DEPTH { 0 } else { u64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_counts() {
        let horizon = OpenHorizon::default();
        let now = now_ns();
        horizon.note(now - 5_000_000);
        let longest = horizon.longest_ns();
        assert!(longest >= 5_000_000);
        horizon.note(now_ns());
        assert_eq!(horizon.longest_ns(), longest);
        horizon.note(u64::MAX);
        assert_eq!(horizon.longest_ns(), longest);
    }
}
