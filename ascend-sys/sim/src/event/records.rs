//! The records of an event, by number: the ones that the host has asked for, that the device has reached, and that a reset has taken back.

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
}

impl Records {
    /// Adds a record of the host. Returns its number.
    pub(crate) fn add(&mut self) -> u64 {
        self.recorded += 1;
        self.recorded
    }

    /// Returns the number of the last record.
    pub(crate) fn last(&self) -> u64 {
        self.recorded
    }

    /// Returns the record that a stream has to wait for; 0 for none.
    pub(crate) fn awaited(&self) -> u64 {
        if self.is_recorded() { self.recorded } else { 0 }
    }

    /// Returns true if there is a record, under way or done, that no reset took back.
    pub(crate) fn is_recorded(&self) -> bool {
        let counts = if self.recorded > self.completed {
            self.recorded
        } else {
            self.stamped
        };
        counts > self.reset_at
    }

    /// Returns true if the device has reached this record.
    pub(crate) fn has_completed(&self, record: u64) -> bool {
        self.completed >= record
    }

    /// Returns true if the last one has completed.
    pub(crate) fn is_complete(&self) -> bool {
        self.completed == self.recorded
    }

    /// Returns the device's time at the last one that completed.
    pub(crate) fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Completes a record that the device has reached.
    pub(crate) fn complete(&mut self, record: u64, ticks: u64) {
        self.completed = self.completed.max(record);
        if record > self.stamped {
            self.stamped = record;
            self.ticks = ticks;
        }
    }

    /// Drops a record that the device will never reach: nothing waits for it any more, and the event is as it was before.
    pub(crate) fn drop(&mut self, record: u64) {
        self.completed = self.completed.max(record);
    }

    /// Takes back all records up to this one, because the device has reached a reset; `None` takes back the ones that it has reached.
    pub(crate) fn reset(&mut self, covers: Option<u64>) {
        let covers = covers.unwrap_or(self.completed);
        self.reset_at = self.reset_at.max(covers);
    }
}
