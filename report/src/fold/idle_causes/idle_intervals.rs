//! The idle time of devices while it is counted → intervals with one cause each, sorted beyond memory.

use crate::rows::{IdleInterval, RowSink};
use crate::table::device_idle::IdleCause;
use std::cell::RefCell;
use std::io;
use trace_store::sorter::{Record, Sorter, long_at, word_at};

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

impl Record for IdleRecord {
    const BYTES: usize = 33;

    fn store(&self, out: &mut Vec<u8>) {
        let (is_known, number) = match self.cause {
            RecordedCause::Known(number) => (1, number),
            RecordedCause::OfWait(number) => (0, number),
        };
        out.extend_from_slice(&self.device.to_le_bytes());
        out.extend_from_slice(&self.start_ns.to_le_bytes());
        out.extend_from_slice(&self.end_ns.to_le_bytes());
        out.extend_from_slice(&self.gap_start_ns.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.push(is_known);
    }

    fn load(bytes: &[u8]) -> Self {
        let number = word_at(bytes, 28);
        IdleRecord {
            device: word_at(bytes, 0),
            start_ns: long_at(bytes, 4).cast_signed(),
            end_ns: long_at(bytes, 12).cast_signed(),
            gap_start_ns: long_at(bytes, 20).cast_signed(),
            cause: match bytes[32] {
                0 => RecordedCause::OfWait(number),
                _ => RecordedCause::Known(number),
            },
        }
    }
}

/// The intervals of all devices. A failure to store one is kept until the end.
pub(crate) struct IntervalStore<'f> {
    sorter: Sorter<'f, IdleRecord>,
    failure: Option<io::Error>,
}

impl<'f> IntervalStore<'f> {
    pub(crate) fn new(sorter: Sorter<'f, IdleRecord>) -> RefCell<IntervalStore<'f>> {
        RefCell::new(IntervalStore {
            sorter,
            failure: None,
        })
    }

    fn push(&mut self, record: IdleRecord) {
        if self.failure.is_none() {
            self.failure = self.sorter.push(record).err();
        }
    }

    /// Puts all intervals into `sink`. `waits` has the causes of the waits of each device.
    pub(crate) fn put(
        self,
        waits: impl Fn(u32, u32) -> IdleCause,
        sink: &mut dyn RowSink,
    ) -> io::Result<()> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.sorter.finish()?.each(|record| {
            sink.idle(&IdleInterval {
                process: record.device as usize,
                cause: match record.cause {
                    RecordedCause::Known(number) => IdleCause::ALL[number as usize],
                    RecordedCause::OfWait(number) => waits(record.device, number),
                },
                start_ns: record.start_ns,
                dur_ns: record.end_ns - record.start_ns,
                gap_start_ns: record.gap_start_ns,
            })
        })
    }
}

/// The idle time of one device.
pub(crate) struct IdleIntervals<'s, 'f> {
    store: &'s RefCell<IntervalStore<'f>>,
    device: u32,
    gap_start_ns: i64,
    /// The interval that may go on.
    open: Option<IdleRecord>,
    /// The causes of the waits after launches, in order.
    waits: Vec<IdleCause>,
    /// True if idle time was counted in the wait that has no cause yet.
    is_waiting: bool,
}

impl<'s, 'f> IdleIntervals<'s, 'f> {
    pub(crate) fn new(store: &'s RefCell<IntervalStore<'f>>, device: u32) -> IdleIntervals<'s, 'f> {
        IdleIntervals {
            store,
            device,
            gap_start_ns: 0,
            open: None,
            waits: Vec::new(),
            is_waiting: false,
        }
    }

    /// Begins a gap.
    pub(crate) fn begin_gap(&mut self, start_ns: i64) {
        self.flush();
        self.gap_start_ns = start_ns;
    }

    /// Adds idle time with a cause, or without one in a wait after a launch.
    pub(crate) fn add(&mut self, cause: Option<IdleCause>, start_ns: i64, ns: i64) {
        let cause = match cause {
            Some(cause) => RecordedCause::Known(cause as u32),
            None => {
                self.is_waiting = true;
                RecordedCause::OfWait(u32::try_from(self.waits.len()).unwrap_or(u32::MAX))
            }
        };
        match &mut self.open {
            Some(open) if open.cause == cause && open.end_ns == start_ns => open.end_ns += ns,
            _ => {
                self.flush();
                self.open = Some(IdleRecord {
                    device: self.device,
                    start_ns,
                    end_ns: start_ns + ns,
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

    /// Stores the last interval, and returns the causes of the waits.
    pub(crate) fn finish(mut self) -> Vec<IdleCause> {
        self.flush();
        self.waits
    }

    fn flush(&mut self) {
        if let Some(record) = self.open.take() {
            self.store.borrow_mut().push(record);
        }
    }
}
