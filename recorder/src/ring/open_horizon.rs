//! The earliest start of the lines that are not in the file yet. The header of each segment
//! contains it, so that a reader knows which segments may contain a line of a time window.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ring::file::Ring;
use crate::ring::slot::Slot;
use crate::sys::clock::now_ns;
use crate::sys::wait;
use crate::text::line::line_start_ns;
use sa_format::ring::STACK_DEPTH;

/// Maximum time in ns to wait for the turn of a slot that another thread is flushing.
const TURN_NS: u64 = 2_000_000;

/// Longest delay in ns between the start of an event and its recording, for events that are
/// recorded only after they began.
#[derive(Debug, Default)]
pub(crate) struct OpenHorizon(AtomicU64);

impl OpenHorizon {
    /// Updates the longest delay with an event that began at `start_ns` and is about to be
    /// recorded. Only for an event that was not open in the ring until now.
    pub(crate) fn observe(&self, start_ns: u64) {
        let late_ns = now_ns().saturating_sub(start_ns);
        if late_ns > self.0.load(Ordering::Relaxed) {
            self.0.fetch_max(late_ns, Ordering::Relaxed);
        }
    }

    /// Returns the longest delay so far, in ns, between the start of an event and its recording.
    pub(crate) fn longest_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Returns the earliest start in ns of all open spans, of all lines in the ring that are not
/// flushed yet, and of the events in `line`. Returns `None` if it cannot be determined. The caller
/// has the lock on the fragment, and the turn (the right to flush) of slot `current` if it is
/// writing one.
pub(crate) fn earliest_unwritten_ns(
    ring: &Ring,
    current: Option<&Slot>,
    line: &[u8],
) -> Option<u64> {
    // Open spans come first: a span that ends in between has published its line by the time the
    // lines are read.
    let mut earliest_ns = earliest_open_ns(ring)?.min(earliest_in(line));
    for slot in ring.slots() {
        let is_current = current.is_some_and(|current| std::ptr::eq(current, slot));
        // The thread that has the turn releases it soon, because the fragment is locked.
        let _turn = match is_current {
            true => None,
            false => Some(wait::until(now_ns() + TURN_NS, || slot.try_turn())?),
        };
        earliest_ns = earliest_ns.min(earliest_pending_ns(slot));
    }
    Some(earliest_ns)
}

/// Returns the earliest start in ns of the published lines of a slot that are not flushed yet.
/// Returns `u64::MAX` if all lines are flushed. The caller has the slot's turn (the right to flush
/// it).
fn earliest_pending_ns(slot: &Slot) -> u64 {
    let (from, head) = (slot.flushed().load(Ordering::Relaxed), slot.head());
    // SAFETY: the caller has the turn, and `head` was read from the state.
    earliest_in(unsafe { slot.published(from, head) })
}

/// Returns the earliest start in ns of the events in `lines`, or `u64::MAX` if the lines contain no
/// event.
fn earliest_in(lines: &[u8]) -> u64 {
    let lines = lines.split(|byte| *byte == b'\n');
    lines.filter_map(line_start_ns).min().unwrap_or(u64::MAX)
}

/// Returns the earliest start in ns of all spans that are open on threads and lanes, or `u64::MAX`
/// if no span is open. Returns `None` if the ring does not contain that start.
fn earliest_open_ns(ring: &Ring) -> Option<u64> {
    let mut earliest_ns = u64::MAX;
    for slot in ring.slots() {
        earliest_ns = earliest_ns.min(earliest_on_stack(slot)?);
    }
    let lanes = ring
        .lane_entries()
        .map(|(_, entry)| entry.start().load(Ordering::Acquire))
        .filter(|start_ns| *start_ns != 0);
    Some(lanes.fold(earliest_ns, u64::min))
}

/// Returns the earliest start in ns of the open spans of a slot's thread, or `u64::MAX` if no span
/// is open. The stack in the ring has entries only for the outermost spans. Returns `None` if all
/// spans that are still open are deeper than that.
fn earliest_on_stack(slot: &Slot) -> Option<u64> {
    let depth = slot.depth();
    let entries = (0..depth.min(STACK_DEPTH)).filter_map(|at| slot.stack_entry(at));
    let starts = entries.map(|entry| entry.start().load(Ordering::Acquire));
    let earliest_ns = starts.filter(|start_ns| *start_ns != 0).min();
    earliest_ns.or((depth <= STACK_DEPTH).then_some(u64::MAX))
}
