//! The records of an event, by number: what the host has asked for, what the device has come to, what a reset took back.

use crate::clock::now_ns;

/// Records count from 1, and no number is given twice: when the device comes to a reset, the host may have recorded again long since. A new record leaves the old
/// timestamp there until it completes.
#[derive(Default)]
pub(crate) struct Records {
    recorded: u64,
    completed: u64,
    /// The last one that really took place; those after it were dropped.
    stamped: u64,
    /// The last record that a reset took back.
    reset_at: u64,
    ticks: u64,
    /// When the host may see the completion.
    visible_ns: u64,
}

impl Records {
    /// The host records once more: the number of that.
    pub(crate) fn add(&mut self) -> u64 {
        self.recorded += 1;
        self.recorded
    }

    /// The last record.
    pub(crate) fn last(&self) -> u64 {
        self.recorded
    }

    /// What a stream has to wait for; 0 where there is nothing.
    pub(crate) fn awaited(&self) -> u64 {
        if self.is_recorded() { self.recorded } else { 0 }
    }

    /// Whether there is a record, under way or done, that no reset took back.
    pub(crate) fn is_recorded(&self) -> bool {
        let counts = if self.recorded > self.completed {
            self.recorded
        } else {
            self.stamped
        };
        counts > self.reset_at
    }

    /// Whether the device has come to this record.
    pub(crate) fn has_completed(&self, record: u64) -> bool {
        self.completed >= record
    }

    /// Whether the host sees that the last one has completed.
    pub(crate) fn is_complete(&self) -> bool {
        self.completed == self.recorded && self.unseen_ns() == 0
    }

    /// For how long the host does not see the last completion yet.
    pub(crate) fn unseen_ns(&self) -> u64 {
        self.visible_ns.saturating_sub(now_ns())
    }

    /// The device's time at the last one that completed.
    pub(crate) fn ticks(&self) -> u64 {
        self.ticks
    }

    /// The device has come to a record.
    pub(crate) fn complete(&mut self, record: u64, ticks: u64, visible_ns: u64) {
        self.completed = self.completed.max(record);
        if record > self.stamped {
            self.stamped = record;
            self.ticks = ticks;
            self.visible_ns = visible_ns;
        }
    }

    /// The device never comes to a record: nobody waits for it any more, and the event is what it was before.
    pub(crate) fn drop(&mut self, record: u64) {
        self.completed = self.completed.max(record);
    }

    /// The device has come to a reset, of this record and those before; none: of those it has come to.
    pub(crate) fn reset(&mut self, covers: Option<u64>) {
        let covers = covers.unwrap_or(self.completed);
        self.reset_at = self.reset_at.max(covers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_leaves_a_later_record_alone() {
        let mut records = Records::default();
        let first = records.add();
        records.add();
        records.complete(first, 7, 0);
        records.reset(Some(first));
        assert!(records.is_recorded() && !records.is_complete());
        records.complete(2, 9, 0);
        assert!(records.is_recorded() && records.is_complete());
        assert_eq!((records.ticks(), records.awaited()), (9, 2));
    }

    #[test]
    fn a_dropped_record_leaves_what_was_before() {
        let mut records = Records::default();
        let dropped = records.add();
        assert!(records.is_recorded() && !records.has_completed(dropped));
        records.drop(dropped);
        assert!(records.has_completed(dropped) && !records.is_recorded());
        let done = records.add();
        records.complete(done, 7, 0);
        let dropped = records.add();
        records.drop(dropped);
        assert!(records.is_recorded() && records.is_complete());
        assert_eq!(records.ticks(), 7);
    }

    #[test]
    fn a_reset_in_a_graph_takes_back_what_has_completed() {
        let mut records = Records::default();
        let record = records.add();
        records.reset(None);
        assert_eq!(records.awaited(), record, "it was under way");
        records.complete(record, 7, 0);
        records.reset(None);
        assert_eq!((records.is_recorded(), records.awaited()), (false, 0));
    }
}
