//! Writes everything to the fragment, during recording or at its end.

use std::sync::atomic::Ordering;

use crate::process::flush::{self, Outcome};
use crate::process::state::Process;
use crate::ring::slot::Slot;
use crate::sys::memory::check_room;
use crate::sys::wait::{self, PATIENCE_NS};
use crate::text::record::metadata_line;
use sa_format::loss::Cause;
use sa_format::{End, RingKind};

use crate::process::{mask, open_spans};
use crate::sys::{self, clock};
use crate::thread::thread_state;

/// Room in bytes for reporting open spans at the end.
const FINISH_BYTES: usize = 96 << 10;
/// Room in bytes for a message on stderr, and for building it.
const MESSAGE_BYTES: usize = 4 << 10;
/// Maximum wait in ns for threads that are inside an event.
const IDLE_NS: u64 = 50_000_000;
/// Time in ns for the steps after the last wait for the file.
const REST_NS: u64 = 200_000_000;

impl Process {
    /// Writes the lines of every ring slot to the fragment, on behalf of a thread of the host. That
    /// thread waits at most `patience_ns` even if the file system hangs.
    pub(crate) fn flush_within(&self, patience_ns: u64) {
        let end_ns = clock::now_ns() + patience_ns;
        self.offload_or_run(end_ns, move |process| process.flush_until(end_ns));
    }

    /// Writes the lines of every ring slot to the fragment, waiting until `end_ns` for threads that
    /// are writing. Returns true if all slots are then empty.
    pub(crate) fn flush_until(&self, end_ns: u64) -> bool {
        if self.is_finished() || !self.is_write_failing() {
            self.report_losses(end_ns);
        }
        let is_left = |slot: &&Slot| flush::flush_until(slot, self, end_ns) != Outcome::Done;
        self.ring.slots().filter(is_left).count() == 0 // `count` tries every slot
    }

    /// Ends recording, at exit or before another recording begins. Flushes every slot that no
    /// thread is writing to, and removes the ring's file if nothing is left in it. Lines that
    /// cannot be written within a second are left to the merge.
    pub(crate) fn finish(&self) {
        if self.finished.swap(true, Ordering::AcqRel) {
            return;
        }
        // Switched off before it is closed, so that every thread that still finds it on can record
        // its event.
        mask::close(self.epoch());
        let orders = (Ordering::SeqCst, Ordering::Relaxed);
        let _ = (self.epochs.recording).compare_exchange(self.epoch(), 0, orders.0, orders.1); // fails only if it is already 0
        sys::barrier_everywhere();
        let idle_by_ns = clock::now_ns() + IDLE_NS;
        let idle = wait::until_true(idle_by_ns, || thread_state::no_thread_inside(self.epoch()));
        self.wake_helper();
        let end_ns = clock::now_ns() + PATIENCE_NS;
        let finish = move |process: &Process| {
            process.finish_files(idle, end_ns);
            process.fragment.close_removed(); // the helper has ended, and the host may continue
        };
        self.offload_or_run(end_ns + REST_NS, finish);
        self.warn_of_hanging_write();
        self.is_over.store(true, Ordering::Release);
    }

    /// Closes the fragment's file, which no longer belongs to this process, unless a thread hangs
    /// while writing to it.
    pub(crate) fn release_files(&self) {
        if let Some(mut active) = self.fragment.lock_until(clock::now_ns() + PATIENCE_NS) {
            active.end();
        }
    }

    fn finish_files(&self, idle: bool, end_ns: u64) {
        let flushed = self.flush_or_drop(end_ns);
        if !(idle && flushed) || clock::now_ns() > end_ns {
            return; // the next merge handles what is left
        }
        if check_room(FINISH_BYTES).is_err() {
            return; // also left to the next merge
        }
        open_spans::close_all(self);
        self.flush_or_drop(end_ns);
        let end = End {
            monotonic_ns: clock::now_ns(),
            ..End::default()
        };
        self.append_own(&metadata_line(self.pid, &end));
        if self.flush_until(end_ns)
            && let Some(mut active) = self.fragment.lock_until(end_ns)
        {
            active.segment.release_blocks();
            if self.ring.kind == RingKind::File && active.segment.is_in_place() {
                active.remove_ring(self.ring.file.id);
            }
        }
    }

    /// Flushes every slot, and returns true if all lines were written. Otherwise drops the lines in
    /// slots that no merge can read, and reports them as lost. After recording has stopped, these
    /// are all slots except the process's own one, which contains the report.
    fn flush_or_drop(&self, end_ns: u64) -> bool {
        if self.flush_until(end_ns) || self.flush_once_more(end_ns) {
            return true;
        }
        let active = self.fragment.try_lock();
        let state = active.map(|active| (active.stopped.is_some(), active.failure()));
        let (stopped, failure) = state.unwrap_or_default();
        let failure = failure.unwrap_or(Cause::WriteError);
        let cause = if stopped { Cause::DiskBound } else { failure };
        let others = self.ring.slots().filter(|slot| slot.index > 0);
        for slot in others.filter(|slot| !slot.in_file || stopped) {
            self.drop_all(slot, cause);
        }
        self.count_unfinished_line();
        self.report_losses(end_ns);
        let is_reported = self.flush_once_more(end_ns);
        let own = self.ring.own_slot();
        if !is_reported && !own.in_file {
            self.drop_all(own, cause);
            self.warn_of_lost_events(cause);
        }
        is_reported
    }

    /// Drops all lines that wait in a slot, and counts their events as lost for `cause`.
    fn drop_all(&self, slot: &Slot, cause: Cause) {
        while !slot.is_empty()
            && let Some(events) = flush::drop_oldest(slot, cause)
        {
            self.lost.add_total(events);
        }
    }

    /// Flushes every slot although the last write failed, because no later attempt follows. Returns
    /// true if all slots are then empty.
    fn flush_once_more(&self, end_ns: u64) -> bool {
        if let Some(mut active) = self.fragment.try_lock() {
            active.failed = None;
        }
        self.flush_until(end_ns)
    }

    /// Warns on stderr how many events are lost, after neither the fragment nor a ring could report
    /// that.
    #[cold]
    fn warn_of_lost_events(&self, cause: Cause) {
        let (events, pid, cause) = (self.lost.total(), self.pid, cause.name());
        if events > 0 && check_room(MESSAGE_BYTES).is_ok() {
            let s = if events == 1 { "" } else { "s" };
            sys::warn_once(&format!(
                "lost {events} event{s} of process {pid}; its fragment does not report this, because it could not be written ({cause})"
            ));
        }
    }

    /// Warns on stderr if events are lost with the process, because they are in memory, waiting for
    /// a write that does not end. Events in a ring's file are left to the merge.
    #[cold]
    fn warn_of_hanging_write(&self) {
        let is_lost = |slot: &&Slot| !slot.in_file && !slot.is_empty();
        let (threads, pid) = (self.ring.slots().filter(is_lost).count(), self.pid);
        if threads > 0 && check_room(MESSAGE_BYTES).is_ok() {
            let s = if threads == 1 { "" } else { "s" };
            sys::warn_once(&format!(
                "lost events of {threads} thread{s} of process {pid}; its fragment does not report this, because its file system hangs and its ring was not on disk"
            ));
        }
    }

    /// Returns true if the last write to the fragment failed. Returns false if another thread is
    /// writing, because it does not wait for that thread.
    pub(crate) fn is_write_failing(&self) -> bool {
        let active = self.fragment.try_lock();
        active.is_some_and(|active| active.failure().is_some())
    }

    /// Returns true if [`Process::finish`] was called, so that recording has ended or is ending.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }
}
