//! Upkeep that recording threads do for their process: with their first event, with the first event
//! in each second, and when they request a flush.
//!
//! They start the helper as soon as that is allowed. A host with one thread may rely on having only
//! one: with two, `unshare` of a user namespace fails, and so does a change of user if the threads'
//! credentials differ. A process therefore gets the helper when it has several threads, or has
//! recorded for so long or so much that such calls are unlikely to follow. Until then, and if the
//! user wants no such thread, recording threads check the control file.

use std::sync::atomic::Ordering;

use crate::process::flush::{self, Extent};
use crate::process::reclaim::{self, ProcessRef};
use crate::process::state::Process;
use crate::process::{errand, helper};
use crate::run::config::Threads;
use crate::sys::{clock, wait};
use sa_format::RingKind;

/// Time in ns for which a process with one thread records before it gets the helper.
const WHILE_NS: u64 = 5_000_000_000;
/// Number of times that its ring fills up before it gets the helper. A short-lived thread for each
/// time costs more.
const OFTEN: u32 = 16;
const SECOND_NS: u64 = 1_000_000_000;
/// Delay in ns after which the helper must be waiting for the disk. A recording thread then applies
/// the switch.
pub(crate) const HELPER_LATE_NS: u64 = 20_000_000;

impl Process {
    /// Does the upkeep if it is due at the time of this event.
    #[inline(always)]
    pub(crate) fn come_by(&self, at_ns: u64) {
        if at_ns >= self.visits.next_ns.load(Ordering::Relaxed) {
            self.visit();
        }
    }

    /// Does the upkeep, inside an event of the calling thread or outside any event.
    #[cold]
    #[inline(never)]
    pub(crate) fn visit(&self) {
        errand::wait_until_kept();
        let now_ns = clock::now_ns();
        let next_ns = now_ns - now_ns % SECOND_NS + SECOND_NS;
        let is_first = self.visits.next_ns.swap(next_ns, Ordering::Relaxed) < next_ns;
        if self.has_helper() {
            if self.switches.is_late(HELPER_LATE_NS) {
                self.follow_within(now_ns);
            }
            return;
        }
        self.follow_within(now_ns);
        if !self.start_helper(now_ns)
            && is_first
            && (self.config.threads == Threads::Never || self.ring.kind != RingKind::File)
        {
            let end_ns = now_ns + wait::PATIENCE_NS;
            self.on_errand_or_here(end_ns, move |process| process.make_rounds(now_ns));
        }
    }

    /// Checks the control file. Like a write, that may hang. Then no thread tries again.
    fn follow_within(&self, now_ns: u64) {
        if errand::is_hanging() || !self.switches.is_late(0) {
            return;
        }
        let follow = |process: &Process| process.switches.follow(process);
        self.on_errand_or_here(now_ns + wait::PATIENCE_NS, follow);
    }

    /// Counts that the calling thread's ring is full in a process without a helper.
    pub(crate) fn come_by_full(&self) {
        if self.visits.full.fetch_add(1, Ordering::Relaxed) == OFTEN {
            self.start_helper(clock::now_ns());
        }
    }

    /// Starts the helper if that is allowed.
    fn start_helper(&self, now_ns: u64) -> bool {
        if self.config.threads == Threads::Never || !self.may_have_helper(now_ns) {
            return false;
        }
        let of_it = |process: &ProcessRef| process.epoch() == self.epoch();
        if let Some(process) = reclaim::existing().filter(of_it) {
            helper::start(process);
        }
        true
    }

    fn may_have_helper(&self, now_ns: u64) -> bool {
        self.config.threads == Threads::AtOnce
            || self.switches.need_a_thread()
            || now_ns >= self.visits.began_ns + WHILE_NS
            || self.visits.full.load(Ordering::Relaxed) > OFTEN
            || !errand::has_one_thread()
    }

    /// Does the work of a helper, as far as that requires no waiting.
    fn make_rounds(&self, now_ns: u64) {
        for slot in self.ring.slots() {
            flush::try_flush(slot, self, Extent::All);
        }
        if let Some(mut rounds) = wait::try_lock(&self.visits.rounds) {
            rounds.make(self, now_ns);
        }
    }
}
