//! Lost events: their causes, which records name (FORMAT.md §2.3) and rings number (§3), and the
//! `sa_loss` record.

use crate::record::{InstantPlace, parse_instant, write_instant};
use crate::ring;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;

/// Reason why events were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The disk had no room.
    DiskFull,
    /// The file reached its size limit.
    FileSizeLimit,
    /// The file could not be written.
    WriteError,
    /// Writes to the file were blocked for so long that the ring filled up.
    Busy,
    /// The fragment was deleted.
    FragmentRemoved,
    /// The process used up its share of the disk.
    DiskBound,
    /// The event was recorded while its thread was recording another one, for example in a signal
    /// handler.
    Signal,
    /// No slot was left for a thread.
    Threads,
    /// Not lost: a duration had to be clamped.
    Clamped,
    /// An event was too large.
    TooLarge,
    /// Too many spans were open.
    TooManyOpen,
    /// Forked children could not open fragments of their own. Counts processes, not events.
    ChildrenRefused,
    /// There was not enough memory for the event or for a part of it.
    OutOfMemory,
    /// Spans were open when the process ended, and its ring had no room for them.
    OpenSpans,
    /// Not lost: a text or a list exceeded its limit and was cut.
    Cut,
    /// Not lost: the program's implementation of `Value` wrote invalid JSON, which was replaced
    /// with `null`.
    BadValue,
    /// Not lost: a value in a counter's series was not a finite number and was left out.
    BadSeries,
}

/// Name of every cause in records, ordered by number.
const NAMES: [(Cause, &str); 17] = [
    (Cause::DiskFull, "disk_full"),
    (Cause::FileSizeLimit, "file_size_limit"),
    (Cause::WriteError, "write_error"),
    (Cause::Busy, "busy"),
    (Cause::FragmentRemoved, "fragment_removed"),
    (Cause::DiskBound, "disk_bound"),
    (Cause::Signal, "signal"),
    (Cause::Threads, "threads"),
    (Cause::Clamped, "clamped"),
    (Cause::TooLarge, "too_large"),
    (Cause::TooManyOpen, "too_many_open"),
    (Cause::ChildrenRefused, "children_refused"),
    (Cause::OutOfMemory, "out_of_memory"),
    (Cause::OpenSpans, "open_spans"),
    (Cause::Cut, "cut"),
    (Cause::BadValue, "bad_value"),
    (Cause::BadSeries, "bad_series"),
];

impl Cause {
    /// Every cause, ordered by number.
    pub const ALL: [Cause; NAMES.len()] = {
        let mut all = [Cause::DiskFull; NAMES.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = NAMES[at].0;
            at += 1;
        }
        all
    };

    /// Returns the name that identifies the cause in `sa_loss` records, such as `disk_full`.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }

    /// Returns the number that identifies the cause in ring files, starting from 1.
    pub fn number(self) -> u32 {
        self as u32 + 1
    }

    /// Returns the cause with this number in ring files, or `None` if the number is unknown.
    pub fn from_number(number: u32) -> Option<Cause> {
        let at = usize::try_from(number.checked_sub(1)?).ok()?;
        Cause::ALL.get(at).copied()
    }

    /// Returns the cause with this name in `sa_loss` records, or `None` if the name is unknown.
    pub fn from_name(name: &str) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| cause.name() == name)
    }

    /// Returns true if the events counted for this cause are missing in the trace.
    pub fn loses_events(self) -> bool {
        !matches!(self, Cause::ChildrenRefused) && !self.changes_events()
    }

    /// Returns true if the events counted for this cause are in the trace, but were recorded with a
    /// change, such as a shortened text.
    pub fn changes_events(self) -> bool {
        matches!(
            self,
            Cause::Clamped | Cause::Cut | Cause::BadValue | Cause::BadSeries
        )
    }
}

/// The args of an `sa_loss` record and its scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossRecord<'a> {
    /// True if all lost events belong to the record's thread.
    #[serde(skip)]
    pub is_thread_scoped: bool,
    /// Name of the cause: the name of a [`Cause`], or one that this version does not know.
    #[serde(borrow)]
    pub cause: Cow<'a, str>,
    /// Number of lost events, or of changed events if the cause only changes them.
    pub events: u64,
    /// Number of processes that could not record at all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processes: u64,
    /// Time from the first lost event, at the record's own time, to the last one in µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_us: Option<u64>,
    /// The error number of the system; 0 if there was none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errno: u64,
    /// Slot whose positions are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// Generation of that slot.
    #[serde(default, rename = "gen", skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// First missing position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Position after the last missing one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Number of missing bytes, in the records that a merge adds for gaps.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// The first segment that was not removed, in records of removed segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u32>,
    /// True if the recorder records no further events.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl<'a> LossRecord<'a> {
    /// Name of the record.
    pub const NAME: &'static str = "sa_loss";

    /// Parses a line of a fragment as an `sa_loss` record, which counts lost events. Returns `None`
    /// if the line is not such a record, or if its args are not as expected.
    pub fn parse(line: &'a [u8]) -> Option<LossRecord<'a>> {
        let (is_thread_scoped, args) = parse_instant(line, LossRecord::NAME)?;
        Some(LossRecord {
            is_thread_scoped,
            ..args
        })
    }

    /// Returns the record as a line with its newline. The line is about the thread `tid` if
    /// `is_thread_scoped` is set, and otherwise about the whole process `pid`. `time_ns` is the
    /// time of the first lost event.
    pub fn line(&self, (pid, tid): (i64, i64), time_ns: i64) -> Vec<u8> {
        let place = InstantPlace {
            pid,
            tid,
            time_ns,
            is_thread_scoped: self.is_thread_scoped,
        };
        let mut line = Vec::new();
        // Writing to a `Vec` cannot fail.
        let _ = write_instant(&mut line, place, LossRecord::NAME, self);
        line
    }

    /// Returns the slot and generation of the stream that has lost lines, and the range of missing
    /// positions. Returns `None` if the record does not name them.
    pub fn positions(&self) -> Option<((u32, u32), Range<u64>)> {
        Some(((self.slot?, self.generation?), self.from?..self.to?))
    }

    /// Returns true if the record counts events that were recorded with a change, such as a
    /// shortened text, instead of missing ones.
    pub fn changes_events(&self) -> bool {
        Cause::from_name(&self.cause).is_some_and(Cause::changes_events)
    }

    /// Returns the number of events that are missing according to the record.
    pub fn lost_events(&self) -> u64 {
        if self.changes_events() {
            return 0;
        }
        self.events
    }
}

/// A loss as a recorder counts it and a ring stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedLoss {
    /// Process id.
    pub pid: u32,
    /// The thread that lost its events; 0 if there were several or none.
    pub tid: u32,
    /// Cause of the loss.
    pub cause: Cause,
    /// Number of lost events; number of processes for [`Cause::ChildrenRefused`].
    pub count: u64,
    /// Time of the first lost event in ns.
    pub first_ns: u64,
    /// Time of the last lost event in ns.
    pub last_ns: u64,
    /// Slot, generation, first missing position and the position after the last one, if the events
    /// had positions.
    pub place: Option<(u32, u32, u64, u64)>,
    /// The error number of the system; 0 if there was none.
    pub error: u32,
}

impl CountedLoss {
    /// Describes `count` losses of one cause, which a ring's count table contains. `word` reads the
    /// u64 at an offset of the cause's entry in that table. The error number is not read.
    pub fn from_entry(
        pid: u32,
        cause: Cause,
        count: u64,
        word: impl Fn(usize) -> u64,
    ) -> CountedLoss {
        let (first_ns, last_ns) = (word(ring::LOSS_FIRST_AT), word(ring::LOSS_LAST_AT));
        CountedLoss {
            pid,
            tid: 0,
            cause,
            count,
            first_ns: ring::first_lost(first_ns, last_ns),
            last_ns,
            place: None,
            error: 0,
        }
    }

    /// Returns the `sa_loss` record of the loss as a line with its newline.
    pub fn line(&self) -> Vec<u8> {
        let (events, processes) = match self.cause {
            Cause::ChildrenRefused => (0, self.count),
            _ => (self.count, 0),
        };
        let record = LossRecord {
            is_thread_scoped: self.tid != 0,
            cause: self.cause.name().into(),
            events,
            processes,
            span_us: Some(self.last_ns.saturating_sub(self.first_ns) / 1000),
            errno: self.error.into(),
            slot: self.place.map(|(slot, ..)| slot),
            generation: self.place.map(|(_, generation, ..)| generation),
            from: self.place.map(|(_, _, from, _)| from),
            to: self.place.map(|(_, _, _, to)| to),
            ..LossRecord::default()
        };
        let tid = if self.tid == 0 { self.pid } else { self.tid };
        let time_ns = i64::try_from(self.first_ns).unwrap_or(i64::MAX);
        record.line((self.pid.into(), tid.into()), time_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_round_trip_by_number_and_name() {
        for (cause, number) in Cause::ALL.into_iter().zip(1..) {
            assert_eq!(cause.number(), number);
            assert_eq!(Cause::from_number(number), Some(cause));
            assert_eq!(Cause::from_name(cause.name()), Some(cause));
        }
        for number in [0, 18] {
            assert_eq!(Cause::from_number(number), None);
        }
    }
}
