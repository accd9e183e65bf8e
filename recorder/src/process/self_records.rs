//! Records of a process about itself in slot 0: its names, its anchors, and what was lost.

use std::sync::atomic::Ordering;

use crate::process::flush::append;
use crate::process::state::Process;
use crate::ring::counters::Unreported;
use crate::ring::loss::MAX_RECORD_BYTES;
use crate::ring::open_entry::OpenEntry;
use crate::ring::slot::{GENERATION, Slot};
use crate::sys::{memory, wait};
use sa_format::loss::{Cause, CountedLoss};

/// Room in bytes for the records of losses.
const LOSS_BYTES: usize = 4 << 10;

impl Process {
    /// Appends lines to slot 0, which contains the process's records about itself. Leaves them out
    /// if another thread keeps the lock on that slot for more than a second.
    pub(crate) fn append_own(&self, lines: &[u8]) {
        if let Some(_turn) = wait::lock(&self.own) {
            self.append_own_locked(lines, |_| ());
        }
    }

    /// Appends lines to slot 0, on a thread that has locked it. Returns false if there is no room
    /// for them. `mark` gets the position where the lines end, before they are published.
    fn append_own_locked(&self, lines: &[u8], mark: impl FnOnce(u64)) -> bool {
        let slot = self.ring.own_slot();
        let has_room = self.make_room(slot, lines.len() as u64);
        if has_room {
            let head = slot.head();
            mark(head + lines.len() as u64);
            append(slot, head, lines, 0);
        }
        has_room
    }

    /// Appends to slot 0 the line of an async span that ends without the host. `entry` is the
    /// span's entry in the ring. A reader sees the line and the closed entry at the same time.
    pub(crate) fn append_own_closing(&self, line: &[u8], entry: OpenEntry) {
        let Some(_turn) = wait::lock(&self.own) else {
            return;
        };
        let own = self.ring.own_slot().index;
        if self.append_own_locked(line, |end| entry.close_with(own, end)) {
            entry.start().store(0, Ordering::Release);
        }
    }

    /// Writes records of all events that were lost since the last call. A loss stays for the next
    /// call if slot 0 is not free by `end_ns`, or if a thread is just counting that loss.
    pub(crate) fn report_losses(&self, end_ns: u64) {
        if memory::check_room(LOSS_BYTES).is_err() {
            return; // the counts stay for the next call
        }
        let Some(_turn) = wait::lock_until(&self.own, end_ns) else {
            return;
        };
        self.ring
            .slots()
            .for_each(|slot| self.report_slot_loss(slot));
        for cause in Cause::ALL {
            let count = memory::drain_count(cause);
            if count > 0 {
                self.lost.add(cause, count);
            }
            if cause.loses_events() {
                self.lost.add_total(count);
            }
        }
        // A hidden span is lost only if it is still open at the end.
        let is_counted =
            |cause: &Cause| !matches!(cause, Cause::FragmentRemoved | Cause::OpenSpans);
        let counted = Cause::ALL.into_iter().filter(is_counted);
        counted.for_each(|cause| self.report_count(cause));
        self.report_removed_fragment();
    }

    /// Writes a record of how many spans are still open but have no entry in the ring, so that they
    /// are lost. Called when recording has ended.
    pub(crate) fn report_hidden_spans(&self) {
        if let Some(_turn) = wait::lock(&self.own) {
            let hidden = self
                .lost
                .unreported(Cause::OpenSpans)
                .map_or(0, |hidden| hidden.loss.count);
            self.lost.add_total(hidden);
            self.report_count(Cause::OpenSpans);
        }
    }

    /// Writes a record of the lines that were dropped from a slot since the last record. The loss
    /// counts as reported from the store that publishes the record.
    fn report_slot_loss(&self, slot: &Slot) {
        let pending = wait::try_lock(&slot.pending);
        if pending.is_none_or(|pending| pending.loss().is_none()) {
            return;
        }
        // Room comes before the lock on the pending loss: making room may drop lines of slot 0,
        // which takes that lock. The line then finds this room.
        if !self.make_room(self.ring.own_slot(), MAX_RECORD_BYTES) {
            return;
        }
        let Some(pending) = wait::try_lock(&slot.pending) else {
            return;
        };
        let Some(loss) = pending.loss() else { return };
        self.open_horizon.observe(loss.first_ns);
        let line = loss.line(self.pid, slot.index, GENERATION);
        debug_assert!(line.len() as u64 <= MAX_RECORD_BYTES);
        if self.append_own_locked(&line, |end| pending.report_at(end)) {
            pending.clear();
        }
    }

    /// Writes a record of how many losses with this cause were counted but not reported yet. Like
    /// the loss of a slot, they count as reported from the store that publishes the record.
    fn report_count(&self, cause: Cause) {
        if let Some(unreported) = self.lost.unreported(cause) {
            self.report(&unreported, &unreported.loss);
        }
    }

    /// Writes the loss record `record`. The same store publishes it and marks the losses in
    /// `unreported` as reported.
    fn report(&self, unreported: &Unreported, record: &CountedLoss) {
        let is_reported = self.append_own_locked(&record.line(), |end| {
            self.open_horizon.observe(record.first_ns);
            self.lost.report_at(unreported, end);
        });
        if is_reported {
            self.lost.mark_reported(unreported);
        }
    }

    /// Writes loss records if somebody removed the fragment: everything flushed to it so far is
    /// lost.
    fn report_removed_fragment(&self) {
        let Some(unreported) = self.lost.unreported(Cause::FragmentRemoved) else {
            return;
        };
        self.lost.add_total(unreported.loss.count);
        for slot in self.ring.slots() {
            let flushed = slot.flushed().load(Ordering::Acquire);
            let mut record = CountedLoss {
                place: Some((slot.index, GENERATION, 0, flushed)),
                ..unreported.loss
            };
            if slot.index == 0 {
                self.report(&unreported, &record);
            } else {
                record.count = 0;
                self.append_own_locked(&record.line(), |_| ());
            }
        }
    }
}
