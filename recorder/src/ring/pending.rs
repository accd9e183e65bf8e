//! The loss of a slot that no record reports yet: an entry of the ring's loss table, which survives
//! a kill (FORMAT.md §3).
//!
//! Each step is a single store. After each store, the entry has either its old or its new meaning.
//! A drop counts from the store of `flushed` that follows it. A record reports it from the store
//! that publishes the record.

use std::sync::atomic::Ordering;

use crate::ring::loss::Loss;
use crate::sys::map::Map;
use sa_format::loss::Cause;
use sa_format::ring as layout;

/// The loss entry of one slot. Only the thread that holds the slot's lock on it uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending(Map);

impl Pending {
    /// Returns the loss entry of a slot, which is at byte `at` of `map`.
    pub(crate) fn new(map: Map, at: usize) -> Pending {
        Pending(map.part(at, layout::LOSS_ENTRY_BYTES))
    }

    fn get(&self, at: usize) -> u64 {
        self.0.u64_at(at).load(Ordering::Acquire)
    }

    fn set(&self, at: usize, value: u64) {
        self.0.u64_at(at).store(value, Ordering::Release);
    }

    fn u32_at(&self, at: usize) -> u32 {
        self.0.u32_at(at).load(Ordering::Acquire)
    }

    fn set_u32(&self, at: usize, value: u32) {
        self.0.u32_at(at).store(value, Ordering::Release);
    }

    /// Returns the slot's loss that no record reports yet. Returns `None` if every loss is
    /// reported.
    pub(crate) fn loss(&self) -> Option<Loss> {
        Some(Loss {
            cause: Cause::from_number(self.u32_at(layout::LOSS_CAUSE_AT))?,
            tid: self.u32_at(layout::LOSS_TID_AT),
            from: self.get(layout::LOSS_FROM_AT),
            to: self.get(layout::LOSS_TO_AT),
            events: self.get(layout::LOSS_EVENTS_AT),
            first_ns: self.get(layout::LOSS_FIRST_AT),
            last_ns: self.get(layout::LOSS_LAST_AT),
        })
    }

    /// Adds the loss of some lines to the slot's entry, which may already contain an earlier loss.
    /// The new one counts once the slot's `flushed` has reached its end, which the caller stores
    /// next.
    pub(crate) fn add(&self, loss: &Loss) {
        match self.loss() {
            Some(earlier) => self.join(&earlier, loss),
            None => self.begin(loss),
        }
    }

    /// Stores the first loss in an empty entry.
    fn begin(&self, loss: &Loss) {
        self.set(layout::LOSS_BEFORE_AT, 0);
        self.set(layout::LOSS_EVENTS_AT, loss.events);
        self.set(layout::LOSS_FROM_AT, loss.from);
        self.set(layout::LOSS_TO_AT, loss.to);
        self.set(layout::LOSS_FIRST_AT, loss.first_ns);
        self.set(layout::LOSS_LAST_AT, loss.last_ns);
        self.set_u32(layout::LOSS_TID_AT, loss.tid);
        self.set_u32(layout::LOSS_CAUSE_AT, loss.cause.number());
    }

    /// Adds a later loss to the entry, which contains an earlier one.
    fn join(&self, earlier: &Loss, later: &Loss) {
        // So far `flushed` has reached `to`, so LOSS_EVENTS counts. From the store of the new `to`
        // on, `flushed` is below it and LOSS_BEFORE counts.
        self.set(layout::LOSS_BEFORE_AT, earlier.events);
        self.set(layout::LOSS_TO_AT, later.to);
        self.set(layout::LOSS_EVENTS_AT, earlier.events + later.events);
        let first_ns = earlier.first_ns.min(later.first_ns);
        self.set(layout::LOSS_FIRST_AT, first_ns);
        self.set(layout::LOSS_LAST_AT, earlier.last_ns.max(later.last_ns));
        if earlier.tid != later.tid {
            self.set_u32(layout::LOSS_TID_AT, 0); // another thread has taken over the slot
        }
    }

    /// Announces the record that reports the slot's loss: it ends at `position` of slot 0, the
    /// process's own slot. The entry stores this, and the loss counts as reported once the record
    /// is published.
    pub(crate) fn report_at(&self, position: u64) {
        self.set(layout::LOSS_REPORTED_AT, position);
    }

    /// Clears the slot's entry after the record that reports its loss was published.
    pub(crate) fn clear(&self) {
        self.set_u32(layout::LOSS_CAUSE_AT, 0);
        self.set(layout::LOSS_REPORTED_AT, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(from: u64, to: u64, events: u64, tid: u32) -> Loss {
        Loss {
            cause: Cause::DiskFull,
            tid,
            from,
            to,
            events,
            first_ns: from,
            last_ns: to,
        }
    }

    #[test]
    fn issue_19_losses_are_joined_until_they_are_reported() {
        let pending = Pending::new(Map::wiped_by_fork().unwrap(), 64);
        assert_eq!(pending.loss(), None);
        pending.add(&loss(10, 20, 2, 5));
        assert_eq!(pending.loss(), Some(loss(10, 20, 2, 5)));
        pending.add(&loss(30, 50, 3, 5));
        assert_eq!(pending.loss(), Some(loss(10, 50, 5, 5)));
        assert_eq!(pending.get(layout::LOSS_BEFORE_AT), 2);
        pending.add(&loss(50, 60, 1, 6));
        assert_eq!(pending.loss(), Some(loss(10, 60, 6, 0)), "of two threads");
        pending.report_at(99);
        pending.clear();
        assert_eq!(pending.loss(), None);
        pending.add(&loss(60, 70, 1, 6));
        assert_eq!(pending.loss(), Some(loss(60, 70, 1, 6)));
        assert_eq!(pending.get(layout::LOSS_REPORTED_AT), 0);
    }
}
