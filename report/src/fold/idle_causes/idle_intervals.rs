//! The idle time of devices while it is counted → intervals with one cause each, sorted beyond memory.

use crate::gather::edge::number;
use crate::rows::IdleInterval;
use crate::table::IdleCause;
use std::io;
use trace_store::sorter::{Record, Sorted, Sorter};

/// An interval while all of them are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IdleRecord {
    device: u32,
    start_ns: i64,
    end_ns: i64,
    gap_start_ns: i64,
    cause: RecordedCause,
}

/// The cause in a record: the number of a known cause, or the number of a wait after a launch, whose cause is decided by the next launch or the end of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RecordedCause {
    Known(u32),
    OfWait(u32),
}

impl Record for IdleRecord {}

impl IdleRecord {
    /// Returns the number of the device's process.
    pub(crate) fn process(&self) -> usize {
        self.device as usize
    }

    /// Returns the interval, after the causes of all waits of its device are known.
    pub(crate) fn interval(&self, of_device: &IdleIntervals) -> IdleInterval {
        IdleInterval {
            process: self.process(),
            cause: match self.cause {
                RecordedCause::Known(number) => IdleCause::ALL[number as usize],
                RecordedCause::OfWait(number) => of_device.waits[number as usize],
            },
            start_ns: self.start_ns,
            dur_ns: self.end_ns - self.start_ns,
            gap_start_ns: self.gap_start_ns,
        }
    }
}

/// The intervals of all devices. A failure to store one is kept until the end.
pub(crate) struct IntervalStore<'f> {
    sorter: Sorter<'f, IdleRecord>,
    failure: Option<io::Error>,
}

impl<'f> IntervalStore<'f> {
    pub(crate) fn new(sorter: Sorter<'f, IdleRecord>) -> IntervalStore<'f> {
        IntervalStore {
            sorter,
            failure: None,
        }
    }

    fn push(&mut self, record: IdleRecord) {
        if self.failure.is_none() {
            self.failure = self.sorter.push(record).err();
        }
    }

    /// Returns all intervals in the order of their devices and times.
    pub(crate) fn finish(self) -> io::Result<Sorted<IdleRecord>> {
        self.failure.map_or(Ok(()), Err)?;
        self.sorter.finish()
    }
}

/// The idle time of one device.
#[derive(Default)]
pub(crate) struct IdleIntervals {
    device: u32,
    gap_start_ns: i64,
    /// The interval that may go on.
    open: Option<IdleRecord>,
    /// The causes of the waits after launches, in order.
    waits: Vec<IdleCause>,
    /// True if idle time was counted in the wait that has no cause yet.
    is_waiting: bool,
}

impl IdleIntervals {
    pub(crate) fn new(device: usize) -> IdleIntervals {
        IdleIntervals {
            device: number(device),
            ..IdleIntervals::default()
        }
    }

    /// Begins a gap.
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
        let cause = match cause {
            Some(cause) => RecordedCause::Known(cause as u32),
            None => {
                self.is_waiting = true;
                RecordedCause::OfWait(number(self.waits.len()))
            }
        };
        match &mut self.open {
            Some(open) if open.cause == cause && open.end_ns == start_ns => open.end_ns = end_ns,
            _ => {
                self.flush(store);
                self.open = Some(IdleRecord {
                    device: self.device,
                    start_ns,
                    end_ns,
                    gap_start_ns: self.gap_start_ns,
                    cause,
                });
            }
        }
    }

    /// Gives the current wait its cause.
    pub(crate) fn end_wait(&mut self, cause: IdleCause) {
        if std::mem::take(&mut self.is_waiting) {
            self.waits.push(cause);
        }
    }

    /// Stores the last interval.
    pub(crate) fn flush(&mut self, store: &mut IntervalStore<'_>) {
        self.open
            .take()
            .into_iter()
            .for_each(|record| store.push(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::idle_causes::long_gaps::{LongGaps, SHOWN};
    use crate::table::LongGap;

    /// Returns the longest gaps of what `add` adds, and the number of waits.
    fn long_gaps(
        add: impl FnOnce(&mut IdleIntervals, &mut IntervalStore<'_>),
    ) -> (Vec<LongGap>, usize) {
        let folders = [std::env::temp_dir()];
        let mut store = IntervalStore::new(Sorter::in_any(&folders, 1 << 20));
        let (mut intervals, mut gaps) = (IdleIntervals::new(3), LongGaps::default());
        add(&mut intervals, &mut store);
        intervals.flush(&mut store);
        let each = |record: IdleRecord| {
            gaps.take(&record.interval(&intervals));
            Ok(())
        };
        store.finish().unwrap().each(each).unwrap();
        (gaps.finish(), intervals.waits.len())
    }

    /// A step without an end, and a million gaps after one launch.
    #[test]
    fn many_gaps_wait_for_one_cause() {
        let (found, waits) = long_gaps(|intervals, store| {
            for ns in 1..1_000_000 {
                let start_ns = ns * 1_000_000;
                intervals.begin_gap(start_ns, store);
                intervals.add(None, (start_ns, start_ns + ns), store);
            }
            intervals.end_wait(IdleCause::LaunchGap);
        });
        assert_eq!(waits, 1);
        assert_eq!(
            (found.len(), found[0].dur_ns, found[9].dur_ns),
            (SHOWN, 999_999, 999_990)
        );
    }
}
