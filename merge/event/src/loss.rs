//! Losses that a recorder has reported in its lines, by thread and cause.

use crate::event::Event;
use sa_format::loss::{Cause, LossRecord};
use std::collections::BTreeMap;

/// Maximum number of threads and causes whose losses a report lists. Sums include all of them.
pub const MOST: usize = 256;

/// Maximum length of a cause. No recorder writes a longer one.
const CAUSE_CHARS: usize = 64;
/// Cause of missing lines that no loss record explains.
pub const GAP: &str = "gap";

/// Process and thread id of a loss record, true if the loss is of that thread only, and the cause.
pub type Row = ((i64, i64), bool, String);

/// Losses in several lines, by thread and cause.
#[derive(Clone, Default)]
pub struct Losses(BTreeMap<Row, Loss>);

/// Losses of one thread or process for one cause. Times are those of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Number of missing events.
    pub events: u64,
    /// Number of processes that could not record.
    pub processes: u64,
    /// Errno of the first error, or 0 if it is unknown.
    pub error: u64,
    /// Bytes of the missing lines, only for [`GAP`].
    pub bytes: u64,
    /// Time of the first loss.
    pub first_ns: i64,
    /// Time of the last loss.
    pub last_ns: i64,
}

/// Returns true if the cause counts events that were recorded with a change, such as a shortened text.
pub fn changes_events(cause: &str) -> bool {
    Cause::from_name(cause).is_some_and(Cause::changes_events)
}

impl Losses {
    /// Adds the loss that an event reports.
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
        self.add_loss(
            ((event.pid, event.tid), record.is_thread_scoped, cause),
            loss,
        );
    }

    fn add_loss(&mut self, mut key: Row, loss: Loss) {
        if self.0.len() >= 16 * MOST && !self.0.contains_key(&key) {
            let ((pid, _), _, cause) = key;
            key = ((pid, pid), false, cause);
            if self.0.len() >= 17 * MOST && !self.0.contains_key(&key) {
                return; // No recorder has so many processes and causes.
            }
        }
        let sum = self.0.entry(key).or_insert(Loss {
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

    /// Adds the losses of later lines.
    pub fn append(&mut self, later: Losses) {
        for (key, loss) in later.0 {
            self.add_loss(key, loss);
        }
    }

    /// Iterates over the losses by thread and cause.
    pub fn iter(&self) -> impl Iterator<Item = (&Row, &Loss)> {
        self.0.iter()
    }

    /// Returns the number of processes that could not record at all.
    pub fn refused(&self) -> u64 {
        let refused = self.0.values().map(|loss| loss.processes);
        refused.fold(0, u64::saturating_add)
    }

    /// Converts all times with `at`.
    pub fn warp(&mut self, at: impl Fn(i64) -> i64) {
        for loss in self.0.values_mut() {
            (loss.first_ns, loss.last_ns) = (at(loss.first_ns), at(loss.last_ns));
        }
    }
}
