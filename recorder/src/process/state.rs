//! The recorder of one process: what it consists of.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::process::async_ids::AsyncIds;
use crate::process::rounds::Visits;
use crate::process::switch::{InForce, Switches};
use crate::ring::counters::Counters;
use crate::ring::file::Ring;
use crate::ring::lanes::Lanes;
use crate::ring::open_horizon::OpenHorizon;
use crate::run::config::Config;
use crate::run::membership::{Before, ProcessName, Run};
use crate::segment::active_segment::Source;
use crate::segment::fragment::Fragment;
use crate::segment::names::Names;
use crate::sys::epoch::EpochWords;
use crate::sys::spin_lock::SpinLock;
use crate::sys::thread::Thread;
use crate::sys::wait::PATIENCE_NS;

/// The recorder of one process.
#[derive(Debug)]
pub(crate) struct Process {
    /// Whether it is of this process, and takes events.
    pub(crate) epochs: EpochWords,
    pub(crate) config: Config,
    pub(crate) in_force: InForce,
    pub(crate) run: Run,
    pub(crate) pid: u32,
    pub(crate) ring: Ring,
    pub(crate) fragment: Fragment,
    pub(crate) lost: Counters,
    pub(crate) open_horizon: OpenHorizon,
    pub(crate) lanes: SpinLock<Lanes>,
    pub(crate) names: Names,
    /// Async spans begun by id.
    pub(crate) async_ids: AsyncIds,
    pub(crate) helper: OnceLock<Thread>,
    /// Somebody is starting it, or has.
    pub(crate) helper_asked: AtomicBool,
    pub(crate) visits: Visits,
    pub(crate) switches: Switches,
    /// The helper is in a long sleep: a thread that fills its ring wakes it.
    pub(crate) helper_sleeps: AtomicBool,
    /// Several threads record at full speed: each flushes for itself.
    pub(crate) crowded: AtomicBool,
    /// Held by whoever writes to slot 0.
    pub(crate) own: Mutex<()>,
    /// Recording is being ended.
    pub(crate) finished: AtomicBool,
    /// It has been, as far as could be.
    pub(crate) is_over: AtomicBool,
}

impl Process {
    /// The number of the recording among those of this process and its ancestors.
    #[inline(always)]
    pub(crate) fn epoch(&self) -> u32 {
        self.ring.epoch
    }

    /// Whether it is not the parent's.
    pub(crate) fn is_own(&self) -> bool {
        self.epochs.owner.load(Ordering::Acquire) == self.epoch()
    }

    /// Whether it takes events.
    pub(crate) fn is_recording(&self) -> bool {
        self.epochs.is_recording(self.epoch())
    }

    /// Returns the facts that the next recording needs about this one, in this process or in a forked child.
    pub(crate) fn before(&self, name: ProcessName) -> Before {
        Before {
            run: self.run.clone(),
            directory: self.config.paths.directory.clone(),
            name,
        }
    }

    /// Whether the helper runs, or did.
    pub(crate) fn has_helper(&self) -> bool {
        self.helper.get().is_some()
    }

    /// Whether the helper takes its turns: one that does not hangs in the file system, perhaps where nobody sees it.
    pub(crate) fn has_helper_at_work(&self) -> bool {
        self.has_helper() && !self.switches.is_late(PATIENCE_NS)
    }

    /// Wakes the helper thread now.
    pub(crate) fn wake_helper(&self) {
        self.helper_sleeps.store(false, Ordering::Relaxed);
        if let Some(helper) = self.helper.get() {
            helper.unpark();
        }
    }

    /// What the fragment is written from.
    #[inline]
    pub(crate) fn source(&self) -> Source<'_> {
        Source {
            ring: &self.ring,
            names: &self.names,
            lost: &self.lost,
            open_horizon: &self.open_horizon,
        }
    }
}
