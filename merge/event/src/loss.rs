//! What a recorder says that it lost: the loss records of a stretch of lines, by row and cause.

use crate::event::Event;
use sa_format::loss::{Cause, LossRecord};
use std::collections::BTreeMap;

/// Most rows of which a report says what they lost; the sum of all stays exact.
pub const MOST: usize = 256;

/// No recorder's cause is longer.
const CAUSE_CHARS: usize = 64;
/// The cause of what is missing and no recorder's record explains.
pub const GAP: &str = "gap";

/// The row that a loss record stands on, whether it is of that thread alone, and why.
pub type Row = ((i64, i64), bool, String);

/// The losses of a stretch of lines, by row and cause.
#[derive(Clone, Default)]
pub struct Losses(BTreeMap<Row, Loss>);

/// What was lost of a row for one cause; times as the lines say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Events that are missing.
    pub events: u64,
    /// Processes that could not record.
    pub processes: u64,
    /// The number of the first error, as of errno; 0 if it is not known.
    pub error: u64,
    /// Bytes of their lines, of [`GAP`] alone.
    pub bytes: u64,
    /// When the first was lost.
    pub first_ns: i64,
    /// When the last was lost.
    pub last_ns: i64,
}

/// Returns whether a cause counts events that were recorded with a change, such as a shortened text.
pub fn changes_events(cause: &str) -> bool {
    Cause::from_name(cause).is_some_and(Cause::changes_events)
}

impl Losses {
    /// Adds the loss that an event reports, to the row of its thread or process.
    pub fn add(&mut self, event: &Event<'_>, record: &LossRecord<'_>) {
        let span_us = record.span_us.unwrap_or(0);
        let span_ns = i64::try_from(span_us.saturating_mul(1000)).unwrap_or(i64::MAX);
        let loss = Loss {
            events: record.events,
            processes: record.processes,
            error: record.errno,
            bytes: record.bytes,
            first_ns: event.ts_ns,
            last_ns: event.ts_ns.saturating_add(span_ns),
        };
        let cause = record.cause.chars().take(CAUSE_CHARS).collect();
        self.join(((event.pid, event.tid), record.of_thread, cause), loss);
    }

    fn join(&mut self, mut row: Row, loss: Loss) {
        if self.0.len() >= 16 * MOST && !self.0.contains_key(&row) {
            let ((pid, _), _, cause) = row;
            row = ((pid, pid), false, cause);
            if self.0.len() >= 17 * MOST && !self.0.contains_key(&row) {
                return; // no recorder has so many processes and causes
            }
        }
        let sum = self.0.entry(row).or_insert(Loss {
            events: 0,
            processes: 0,
            bytes: 0,
            ..loss
        });
        sum.events = sum.events.saturating_add(loss.events);
        sum.processes = sum.processes.saturating_add(loss.processes);
        sum.bytes = sum.bytes.saturating_add(loss.bytes);
        sum.first_ns = sum.first_ns.min(loss.first_ns);
        sum.last_ns = sum.last_ns.max(loss.last_ns);
    }

    /// Adds what comes after `self`.
    pub fn append(&mut self, later: Losses) {
        for (row, loss) in later.0 {
            self.join(row, loss);
        }
    }

    /// Each row and cause, and what was lost.
    pub fn iter(&self) -> impl Iterator<Item = (&Row, &Loss)> {
        self.0.iter()
    }

    /// Processes that could not record at all.
    pub fn refused(&self) -> u64 {
        let refused = self.0.values().map(|loss| loss.processes);
        refused.fold(0, u64::saturating_add)
    }

    /// Moves all times.
    pub fn warp(&mut self, at: impl Fn(i64) -> i64) {
        for loss in self.0.values_mut() {
            (loss.first_ns, loss.last_ns) = (at(loss.first_ns), at(loss.last_ns));
        }
    }
}
