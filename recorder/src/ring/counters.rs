//! Losses without a position. The ring's count table counts them by cause until a record reports
//! them, and keeps them after a kill (FORMAT.md §3).

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::clock;
use crate::sys::map::Map;
use sa_format::loss::{Cause, CountedLoss};
use sa_format::ring as layout;

/// The loss counts of a process.
#[derive(Debug)]
pub(crate) struct Counters {
    map: Map,
    at: usize,
    pid: u32,
    total: AtomicU64,
}

/// Losses of one cause that no record reports yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreported {
    pub(crate) loss: CountedLoss,
    /// Count that is reported once this loss is.
    until: u64,
}

impl Counters {
    /// Returns the loss counts of process `pid`. They are stored in the ring's count table, which
    /// begins at byte `at` of `map`.
    pub(crate) fn new(map: Map, at: usize, pid: u32) -> Counters {
        Counters {
            map,
            at,
            pid,
            total: AtomicU64::new(0),
        }
    }

    fn u64_at(&self, cause: Cause, at: usize) -> &'static AtomicU64 {
        self.map.u64_at(self.entry(cause) + at)
    }

    fn entry(&self, cause: Cause) -> usize {
        self.at + cause.number() as usize * layout::LOSS_ENTRY_BYTES
    }

    /// Counts one loss of this cause. Also adds it to the process's total if the cause loses an
    /// event. Signal handlers may call this.
    pub(crate) fn count(&self, cause: Cause) {
        self.add(cause, 1);
        if cause.loses_events() {
            self.add_total(1);
        }
    }

    /// Adds `count` losses of a cause at the current time, without adding them to the process's
    /// total.
    pub(crate) fn add(&self, cause: Cause, count: u64) {
        let now_ns = clock::now_ns();
        let first = self.u64_at(cause, layout::LOSS_FIRST_AT);
        let _ = first.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed); // fails if an earlier event was the first
        let last = self.u64_at(cause, layout::LOSS_LAST_AT);
        last.fetch_max(now_ns, Ordering::Relaxed);
        let events = self.u64_at(cause, layout::COUNT_EVENTS_AT);
        events.fetch_add(count, Ordering::Release);
    }

    /// Counts a span as lost while it is open, because it has no entry in the ring.
    /// [`Counters::end_hidden`] reverts this. A process that ends in between has lost the span.
    #[cold]
    pub(crate) fn begin_hidden(&self) {
        self.add(Cause::OpenSpans, 1);
    }

    /// Reverts [`Counters::begin_hidden`] for a span that has ended.
    #[cold]
    pub(crate) fn end_hidden(&self) {
        let events = self.u64_at(Cause::OpenSpans, layout::COUNT_EVENTS_AT);
        if events.fetch_sub(1, Ordering::Release) == 1 {
            let first = self.u64_at(Cause::OpenSpans, layout::LOSS_FIRST_AT);
            first.store(0, Ordering::Relaxed); // the next span is the first again
        }
    }

    /// Counts the calling process in the ring of its parent, as a forked child that could not open
    /// a fragment. `error` is the error number from the system. This is the only thing that a child
    /// ever does to its parent's ring.
    pub(crate) fn count_refused_child(&self, error: u32) {
        let at = self.entry(Cause::ChildrenRefused) + layout::COUNT_ERROR_AT;
        self.map.u32_at(at).store(error, Ordering::Relaxed);
        self.add(Cause::ChildrenRefused, 1);
    }

    /// Adds a number of lost events to the process's total.
    pub(crate) fn add_total(&self, events: u64) {
        self.total.fetch_add(events, Ordering::Relaxed);
    }

    /// Returns the number of events lost so far in this recording.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Returns the losses of a cause that no record in the trace reports yet. Returns `None` if
    /// every loss is reported.
    pub(crate) fn unreported(&self, cause: Cause) -> Option<Unreported> {
        let get = |at| self.u64_at(cause, at).load(Ordering::Acquire);
        let (until, reported) = (get(layout::COUNT_EVENTS_AT), get(layout::COUNT_REPORTED_AT));
        let count = until.checked_sub(reported).filter(|count| *count > 0)?;
        let error = self.map.u32_at(self.entry(cause) + layout::COUNT_ERROR_AT);
        Some(Unreported {
            loss: CountedLoss {
                error: error.load(Ordering::Relaxed), // 0 for all but refused children
                ..CountedLoss::from_entry(self.pid, cause, count, get)
            },
            until,
        })
    }

    /// Announces the record that reports the losses in `unreported`: it ends at `position` of slot
    /// 0, the process's own slot. The ring's count table stores this, and the losses count as
    /// reported once the record is published.
    pub(crate) fn report_at(&self, unreported: &Unreported, position: u64) {
        let cause = unreported.loss.cause;
        let set = |at, value| self.u64_at(cause, at).store(value, Ordering::Release);
        set(layout::COUNT_NEXT_AT, unreported.until);
        set(layout::LOSS_REPORTED_AT, position);
    }

    /// Marks the losses in `unreported` as reported. Called after the record that reports them was
    /// published.
    pub(crate) fn mark_reported(&self, unreported: &Unreported) {
        let (cause, first_ns) = (unreported.loss.cause, unreported.loss.first_ns);
        let set = |at, value| self.u64_at(cause, at).store(value, Ordering::Release);
        set(layout::COUNT_REPORTED_AT, unreported.until);
        set(layout::LOSS_REPORTED_AT, 0);
        // The next loss of this cause is the first again.
        let first = self.u64_at(cause, layout::LOSS_FIRST_AT);
        let _ = first.compare_exchange(first_ns, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_reported_once() {
        let counters = Counters::new(Map::wiped_by_fork().unwrap(), 1024, 1);
        counters.count(Cause::Signal);
        counters.count(Cause::Clamped);
        counters.count_refused_child(13);
        let count = |cause| {
            counters
                .unreported(cause)
                .map(|unreported| unreported.loss.count)
        };
        assert_eq!(count(Cause::Busy), None);
        // Clamped events and children are not lost events.
        assert_eq!(counters.total(), 1);
        let refused = counters.unreported(Cause::ChildrenRefused).unwrap().loss;
        assert_eq!((refused.count, refused.error), (1, 13));
        let signal = counters.unreported(Cause::Signal).unwrap();
        let last_ns = signal.loss.last_ns;
        assert!((1..=last_ns).contains(&signal.loss.first_ns));
        counters.report_at(&signal, 99);
        counters.count(Cause::Signal); // while the first one is being reported
        counters.mark_reported(&signal);
        assert_eq!(count(Cause::Signal), Some(1));
        let again = counters.unreported(Cause::Signal).unwrap().loss;
        // Events that were already reported do not affect its first time.
        assert_eq!(again.first_ns, again.last_ns);
        assert!(again.first_ns >= last_ns);
    }
}
