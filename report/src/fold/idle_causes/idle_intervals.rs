//! Collects the idle time of devices as intervals with one cause each, sorted in temporary files.

use crate::rows::IdleInterval;
use crate::table::IdleCause;
use std::io;
use trace_store::sorter::{Record, Sorted, Sorter};

impl Record for IdleInterval {}

/// The intervals of all devices. An error while storing one is returned at the end.
pub(crate) struct IntervalStore<'f> {
    sorter: Sorter<'f, IdleInterval>,
    failure: Option<io::Error>,
}

impl<'f> IntervalStore<'f> {
    pub(crate) fn new(sorter: Sorter<'f, IdleInterval>) -> IntervalStore<'f> {
        IntervalStore {
            sorter,
            failure: None,
        }
    }

    fn push(&mut self, interval: IdleInterval) {
        if self.failure.is_none() {
            self.failure = self.sorter.push(interval).err();
        }
    }

    /// Returns all intervals, ordered by device and time.
    pub(crate) fn finish(self) -> io::Result<Sorted<IdleInterval>> {
        self.failure.map_or(Ok(()), Err)?;
        self.sorter.finish()
    }
}

/// Idle time of one device.
#[derive(Default)]
pub(crate) struct IdleIntervals {
    device: usize,
    gap_start_ns: i64,
    /// The interval that may still grow, and its cause. The cause is `None` in a wait after a launch, because it is not
    /// known yet.
    open: Option<(Option<IdleCause>, PartOfGap)>,
    /// Intervals of the current wait after a launch. The next launch or the end of the step decides their cause.
    waiting: Vec<PartOfGap>,
}

/// An interval without its cause.
#[derive(Clone, Copy, Debug)]
struct PartOfGap {
    start_ns: i64,
    end_ns: i64,
    gap_start_ns: i64,
}

impl IdleIntervals {
    pub(crate) fn new(device: usize) -> IdleIntervals {
        IdleIntervals {
            device,
            ..IdleIntervals::default()
        }
    }

    /// Starts a new gap of the device at `start_ns`. The open interval of the previous gap ends.
    pub(crate) fn begin_gap(&mut self, start_ns: i64, store: &mut IntervalStore<'_>) {
        self.flush(store);
        self.gap_start_ns = start_ns;
    }

    /// Adds idle time with a cause, or without one in a wait after a launch.
    pub(crate) fn add(
        &mut self,
        cause: Option<IdleCause>,
        (start_ns, end_ns): (i64, i64),
        store: &mut IntervalStore<'_>,
    ) {
        match &mut self.open {
            Some((open_cause, open)) if *open_cause == cause && open.end_ns == start_ns => {
                open.end_ns = end_ns;
            }
            _ => {
                self.flush(store);
                let part = PartOfGap {
                    start_ns,
                    end_ns,
                    gap_start_ns: self.gap_start_ns,
                };
                self.open = Some((cause, part));
            }
        }
    }

    /// Ends the current wait after a launch with this cause.
    pub(crate) fn end_wait(&mut self, cause: IdleCause, store: &mut IntervalStore<'_>) {
        let last = self.open.take_if(|(open_cause, _)| open_cause.is_none());
        self.waiting.extend(last.map(|(_, part)| part));
        for part in std::mem::take(&mut self.waiting) {
            self.store(part, cause, store);
        }
    }

    /// Stores the last interval, or holds it back until its cause is known.
    pub(crate) fn flush(&mut self, store: &mut IntervalStore<'_>) {
        match self.open.take() {
            Some((Some(cause), part)) => self.store(part, cause, store),
            Some((None, part)) => self.waiting.push(part),
            None => {}
        }
    }

    fn store(&self, part: PartOfGap, cause: IdleCause, store: &mut IntervalStore<'_>) {
        store.push(IdleInterval {
            process: self.device,
            start_ns: part.start_ns,
            dur_ns: part.end_ns - part.start_ns,
            gap_start_ns: part.gap_start_ns,
            cause,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::idle_causes::long_gaps::{LongGaps, SHOWN};
    use crate::table::LongGap;

    /// Returns the longest gaps of the intervals that `add` adds.
    fn long_gaps(add: impl FnOnce(&mut IdleIntervals, &mut IntervalStore<'_>)) -> Vec<LongGap> {
        let folders = [std::env::temp_dir()];
        let mut store = IntervalStore::new(Sorter::in_any(&folders, 1 << 20));
        let (mut intervals, mut gaps) = (IdleIntervals::new(3), LongGaps::default());
        add(&mut intervals, &mut store);
        intervals.flush(&mut store);
        let found = store.finish().unwrap();
        found.iter().for_each(|interval| gaps.add(interval));
        gaps.finish()
    }

    /// Adds a million gaps after one launch, in a step that ends only after them.
    #[test]
    fn many_gaps_wait_for_one_cause() {
        let found = long_gaps(|intervals, store| {
            for ns in 1..1_000_000 {
                let start_ns = ns * 1_000_000;
                intervals.begin_gap(start_ns, store);
                intervals.add(None, (start_ns, start_ns + ns), store);
            }
            intervals.end_wait(IdleCause::LaunchGap, store);
        });
        assert_eq!(found[0].cause, IdleCause::LaunchGap);
        assert_eq!(
            (found.len(), found[0].dur_ns, found[9].dur_ns),
            (SHOWN, 999_999, 999_990)
        );
    }
}
