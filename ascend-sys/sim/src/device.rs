//! A device: its clock, its limited number of streams, and its error if it is lost.

use crate::clock::{DeviceClock, now_ns};
use crate::config::Config;
use crate::wait::lock;
use crate::{Outcome, outcome};
use ascend_sys::codes::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

/// Maximum number of streams of a device in a process.
const STREAMS: usize = 1984;

/// A device that the process sees.
pub(crate) struct Device {
    /// The id that the process uses.
    pub(crate) user: i32,
    pub(crate) logical: u32,
    pub(crate) clock: DeviceClock,
    /// For each stream id, true if it is in use.
    stream_ids: Mutex<Vec<bool>>,
    /// 0, or the error that every call returns.
    lost: AtomicI32,
}

impl Device {
    pub(crate) fn new(config: &Config, user: i32, logical: u32, first_ns: u64) -> Self {
        let index = logical as usize;
        let (offset, drift) = (config.offsets_ns[index], config.drifts_ppb[index]);
        Self {
            user,
            logical,
            clock: DeviceClock::new(offset, drift, config.step, first_ns, config.soc.tick_mhz()),
            stream_ids: Mutex::new(vec![false; STREAMS]),
            lost: AtomicI32::new(0),
        }
    }

    /// Fails if the device is lost.
    pub(crate) fn check(&self) -> Outcome {
        outcome(self.lost.load(Ordering::Relaxed))
    }

    /// Makes every call fail with this code. 0 makes the device work again.
    pub(crate) fn lose(&self, code: i32) {
        self.lost.store(code, Ordering::Relaxed);
    }

    /// Returns the current value of the counter.
    pub(crate) fn ticks(&self) -> u64 {
        self.clock.ticks(now_ns())
    }

    /// Allocates the lowest free stream id.
    pub(crate) fn allocate_stream_id(&self) -> Outcome<i32> {
        let mut used = lock(&self.stream_ids);
        let free = used.iter().position(|used| !used);
        let free = free.ok_or(ACL_ERROR_RT_NO_STREAM_RESOURCE)?;
        used[free] = true;
        i32::try_from(free).map_err(|_| ACL_ERROR_RT_NO_STREAM_RESOURCE)
    }

    pub(crate) fn free_stream_id(&self, id: i32) {
        let mut ids = lock(&self.stream_ids);
        if let Some(used) = usize::try_from(id).ok().and_then(|id| ids.get_mut(id)) {
            *used = false;
        }
    }
}
