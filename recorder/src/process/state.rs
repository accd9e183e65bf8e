//! The recorder of one process: its parts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::process::async_ids::AsyncIds;
use crate::process::periodic::Upkeep;
use crate::process::switch::{InForce, Switches};
use crate::ring::counters::Counters;
use crate::ring::file::Ring;
use crate::ring::lanes::Lanes;
use crate::ring::open_horizon::OpenHorizon;
use crate::run::config::Config;
use crate::run::membership::{PreviousRecording, ProcessName, Run};
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
    /// Epochs that show if the recorder belongs to this process and accepts events.
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
    /// True once a thread is starting the helper or has started it.
    pub(crate) helper_requested: AtomicBool,
    pub(crate) upkeep: Upkeep,
    pub(crate) switches: Switches,
    /// True while the helper is in a long sleep. A thread that fills its ring wakes it.
    pub(crate) helper_sleeps: AtomicBool,
    /// True while several threads record at full speed. Each then flushes its own slot.
    pub(crate) crowded: AtomicBool,
    /// Held by the thread that writes to slot 0.
    pub(crate) own: Mutex<()>,
    /// True once recording is being ended.
    pub(crate) finished: AtomicBool,
    /// True once recording has been ended, as far as that was possible.
    pub(crate) is_over: AtomicBool,
}

impl Process {
    /// Returns the epoch of this recording: its number among the recordings of this process and its
    /// ancestors.
    #[inline(always)]
    pub(crate) fn epoch(&self) -> u32 {
        self.ring.epoch
    }

    /// Returns true if this recorder belongs to the calling process. Returns false if the calling
    /// process is a fork of the one that started it.
    pub(crate) fn is_own(&self) -> bool {
        self.epochs.owner.load(Ordering::Acquire) == self.epoch()
    }

    /// Returns true if this recorder accepts events now.
    pub(crate) fn is_recording(&self) -> bool {
        self.epochs.is_recording(self.epoch())
    }

    /// Returns the run and the directory of this recording, with the process name `name`, for the
    /// recording that replaces it in this process or in a forked child.
    pub(crate) fn as_previous(&self, name: ProcessName) -> PreviousRecording {
        PreviousRecording {
            run: self.run.clone(),
            directory: self.config.paths.directory.clone(),
            name,
        }
    }

    /// Returns true if the recorder's helper thread was started.
    pub(crate) fn has_helper(&self) -> bool {
        self.helper.get().is_some()
    }

    /// Returns true if the recorder's helper thread was started and is on time with its checks of
    /// the control file. Otherwise it may hang in the file system while no other thread notices.
    pub(crate) fn has_helper_at_work(&self) -> bool {
        self.has_helper() && !self.switches.is_late(PATIENCE_NS)
    }

    /// Wakes the recorder's helper thread if it is asleep.
    pub(crate) fn wake_helper(&self) {
        self.helper_sleeps.store(false, Ordering::Relaxed);
        if let Some(helper) = self.helper.get() {
            helper.unpark();
        }
    }

    /// Bundles the parts of the recorder that a write to the fragment needs: ring, names and
    /// counters.
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
