//! Brings everything into the fragment, now or for good.

use std::sync::atomic::Ordering;

use crate::flush::{self, Outcome};
use crate::format::{END_RECORD, RingKind};
use crate::fragment::metadata_line;
use crate::loss::Cause;
use crate::process::{self, Process};
use crate::{clock, open, seat, sys};

impl Process {
    /// Flushes every slot; returns whether all are empty then.
    pub(crate) fn flush_all(&self, patience_ns: u64) -> bool {
        if self.is_finished() || !self.is_refused() {
            self.tell_losses();
        }
        let end = clock::now_ns() + patience_ns;
        let mut whole = true;
        for slot in self.ring.slots() {
            let mut outcome = flush::flush(slot, &self.fragment, self.pid);
            while outcome == Outcome::Busy && clock::now_ns() < end {
                std::thread::sleep(std::time::Duration::from_micros(50));
                outcome = flush::flush(slot, &self.fragment, self.pid);
            }
            whole &= outcome == Outcome::Done;
        }
        whole
    }

    /// Ends recording: what is idle is flushed, and the ring goes if nothing is left in it.
    pub(crate) fn finish(&'static self) {
        if self.finished.swap(true, Ordering::AcqRel) {
            return;
        }
        process::close();
        sys::barrier_everywhere();
        let idle = seat::wait_until_idle(self, 50_000_000);
        self.wake_helper();
        let flushed = self.flush_all(1_000_000_000);
        if !flushed {
            self.give_up_memory();
        }
        if !(idle && flushed) {
            return; // the next merge settles what is left
        }
        open::close_all(self);
        self.flush_all(1_000_000_000);
        let end = serde_json::json!({ "monotonic_ns": clock::now_ns() });
        self.tell(&metadata_line(self.pid, END_RECORD, end));
        if self.flush_all(1_000_000_000)
            && self.ring.kind == RingKind::File
            && self.fragment.lock().is_in_place()
        {
            self.fragment.lock().remove_ring(self.ring.descriptor().1);
        }
    }

    /// Tells what is lost with the slots that no merge can read.
    fn give_up_memory(&self) {
        let cause = self.fragment.lock().failure().unwrap_or(Cause::WriteError);
        for slot in self.ring.slots().filter(|slot| !slot.in_file) {
            while !slot.is_empty() {
                let Some(events) = flush::drop_oldest(slot, cause) else {
                    break;
                };
                self.lost.add_total(events);
            }
        }
        self.tell_losses();
    }

    /// Whether the last write failed, as far as can be seen without waiting.
    pub(crate) fn is_refused(&self) -> bool {
        let place = self.fragment.try_lock();
        place.is_some_and(|place| place.failure().is_some())
    }

    /// Whether [`Process::finish`] was called.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }
}
