//! Upkeep that recording threads do for their process: with their first event, with the first event
//! in each second, and when they request a flush.
//!
//! They start the helper as soon as that is allowed. A host with one thread may rely on having only
//! one: with two, `unshare` of a user namespace fails, and so does a change of user if the threads'
//! credentials differ. A process therefore gets the helper when it has several threads, or has
//! recorded long enough or enough events that such calls are unlikely to follow. Until then, and if
//! the user wants no such thread, recording threads check the control file.

use std::sync::atomic::Ordering;

use crate::process::flush::{self, Extent};
use crate::process::reclaim::{self, ProcessRef};
use crate::process::state::Process;
use crate::process::{helper, offload};
use crate::run::config::Threads;
use crate::sys::{clock, wait};
use sa_format::RingKind;

/// Time in ns for which a process with one thread records before it gets the helper.
const HELPER_AFTER_NS: u64 = 5_000_000_000;
/// Number of times that its ring fills up before it gets the helper. A short-lived thread for each
/// time costs more.
const MANY_FULL_RINGS: u32 = 16;
const SECOND_NS: u64 = 1_000_000_000;
/// Delay in ns after which the helper must be waiting for the disk. A recording thread then applies
/// the switch.
pub(crate) const HELPER_LATE_NS: u64 = 20_000_000;

impl Process {
    /// Does a recording thread's upkeep (see [`Process::do_upkeep`]) if it is due at `at_ns`, the
    /// time of the current event.
    #[inline(always)]
    pub(crate) fn upkeep_if_due(&self, at_ns: u64) {
        if at_ns >= self.upkeep.next_ns.load(Ordering::Relaxed) {
            self.do_upkeep();
        }
    }

    /// Applies due switches of the control file. Then starts the recorder's helper thread if that
    /// is allowed, or does the helper's work if there can be none. Runs inside an event of the
    /// calling thread or outside any event.
    #[cold]
    #[inline(never)]
    pub(crate) fn do_upkeep(&self) {
        offload::wait_until_kept_loaded();
        let now_ns = clock::now_ns();
        let next_ns = now_ns - now_ns % SECOND_NS + SECOND_NS;
        let is_first = self.upkeep.next_ns.swap(next_ns, Ordering::Relaxed) < next_ns;
        if self.has_helper() {
            if self.switches.is_late(HELPER_LATE_NS) {
                self.apply_switches_within(now_ns);
            }
            return;
        }
        self.apply_switches_within(now_ns);
        if !self.start_helper(now_ns)
            && is_first
            && (self.config.threads == Threads::Never || self.ring.kind != RingKind::File)
        {
            let end_ns = now_ns + wait::PATIENCE_NS;
            self.offload_or_run(end_ns, move |process| process.do_helper_work(now_ns));
        }
    }

    /// Checks the control file and applies due switches, in at most a second. The check may hang in
    /// the file system, as a write may. Then no thread tries again.
    fn apply_switches_within(&self, now_ns: u64) {
        if offload::is_hanging() || !self.switches.is_late(0) {
            return;
        }
        let apply = |process: &Process| process.switches.apply_due(process);
        self.offload_or_run(now_ns + wait::PATIENCE_NS, apply);
    }

    /// Counts that the calling thread's ring area is full, in a process without a helper thread.
    /// Starts the helper thread once that has happened 16 times.
    pub(crate) fn count_full_ring(&self) {
        if self.upkeep.full.fetch_add(1, Ordering::Relaxed) == MANY_FULL_RINGS {
            self.start_helper(clock::now_ns());
        }
    }

    /// Starts the recorder's helper thread if it is allowed at `now_ns`. Returns false if it is
    /// not.
    fn start_helper(&self, now_ns: u64) -> bool {
        if self.config.threads == Threads::Never || !self.may_have_helper(now_ns) {
            return false;
        }
        let is_self = |process: &ProcessRef| process.epoch() == self.epoch();
        if let Some(process) = reclaim::existing().filter(is_self) {
            helper::start(process);
        }
        true
    }

    fn may_have_helper(&self, now_ns: u64) -> bool {
        self.config.threads == Threads::AtOnce
            || self.switches.need_a_thread()
            || now_ns >= self.upkeep.began_ns + HELPER_AFTER_NS
            || self.upkeep.full.load(Ordering::Relaxed) > MANY_FULL_RINGS
            || !offload::has_one_thread()
    }

    /// Does what the recorder's helper thread would do, as far as that requires no waiting: flushes
    /// all slots and writes periodic records.
    fn do_helper_work(&self, now_ns: u64) {
        for slot in self.ring.slots() {
            flush::try_flush(slot, self, Extent::All);
        }
        if let Some(mut periodic) = wait::try_lock(&self.upkeep.periodic) {
            periodic.record_due(self, now_ns);
        }
    }
}
