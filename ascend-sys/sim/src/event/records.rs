//! The numbers of an event's records: which ones the host has submitted, the device has reached, and a reset has cancelled.

/// The records of an event. They count from 1 and no number is used twice, because the host may have recorded again long before the device reaches a reset. The old
/// timestamp stays until a new record completes.
#[derive(Default)]
pub(crate) struct Records {
    recorded: u64,
    completed: u64,
    /// The last record that really took place. Later ones were dropped.
    stamped: u64,
    /// The last record that a reset cancelled.
    reset_at: u64,
    ticks: u64,
}

impl Records {
    /// Adds a record that the host submits. Returns its number.
    pub(crate) fn add(&mut self) -> u64 {
        self.recorded += 1;
        self.recorded
    }

    /// Returns the number of the last record.
    pub(crate) fn last(&self) -> u64 {
        self.recorded
    }

    /// Returns the number of the record for which a stream has to wait, or 0 if there is none.
    pub(crate) fn awaited(&self) -> u64 {
        if self.is_recorded() { self.recorded } else { 0 }
    }

    /// Returns true if there is a pending or completed record that no reset has cancelled.
    pub(crate) fn is_recorded(&self) -> bool {
        let last = if self.recorded > self.completed {
            self.recorded
        } else {
            self.stamped
        };
        last > self.reset_at
    }

    /// Returns true if the device has reached this record.
    pub(crate) fn has_completed(&self, record: u64) -> bool {
        self.completed >= record
    }

    /// Returns true if the last record has completed.
    pub(crate) fn is_complete(&self) -> bool {
        self.completed == self.recorded
    }

    /// Returns the device's time at the last completed record.
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

    /// Drops a record that the device will never reach. Nothing waits for it any more, and the event is in its state before the record.
    pub(crate) fn drop(&mut self, record: u64) {
        self.completed = self.completed.max(record);
    }

    /// Cancels all records up to `covers`, because the device has reached a reset. `None` cancels all records that the device has reached.
    pub(crate) fn reset(&mut self, covers: Option<u64>) {
        let covers = covers.unwrap_or(self.completed);
        self.reset_at = self.reset_at.max(covers);
    }
}
