//! A device: its clock, its limited resources, and whether it still answers.

use crate::clock::{DeviceClock, now_ns};
use crate::config::Config;
use crate::wait::{LOOK, lock};
use crate::{Outcome, outcome};
use ascend_sys::codes::*;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// A device that the process sees.
pub(crate) struct Device {
    /// The id that the process uses.
    pub(crate) user: i32,
    pub(crate) logical: u32,
    pub(crate) physical: u32,
    pub(crate) clock: DeviceClock,
    /// For each stream id, true if it is taken.
    stream_ids: Mutex<Vec<bool>>,
    events_left: Mutex<usize>,
    event_freed: Condvar,
    /// 0, or the error of every call.
    lost: AtomicI32,
}

impl Device {
    pub(crate) fn new(config: &Config, user: i32, logical: u32, first_ns: u64) -> Self {
        let of = logical as usize;
        let (offset, drift) = (config.offsets_ns[of], config.drifts_ppb[of]);
        Self {
            user,
            logical,
            physical: config.physical_base + logical,
            clock: DeviceClock::new(offset, drift, config.step, first_ns, config.soc.tick_mhz()),
            stream_ids: Mutex::new(vec![false; config.streams]),
            events_left: Mutex::new(config.events),
            event_freed: Condvar::new(),
            lost: AtomicI32::new(0),
        }
    }

    /// Fails once the device is lost.
    pub(crate) fn check(&self) -> Outcome {
        outcome(self.lost.load(Ordering::Relaxed))
    }

    /// Makes every call fail with this code; 0 makes the device answer again.
    pub(crate) fn lose(&self, code: i32) {
        self.lost.store(code, Ordering::Relaxed);
    }

    /// Returns the counter now.
    pub(crate) fn ticks(&self) -> u64 {
        self.clock.ticks(now_ns())
    }

    /// Takes the lowest free id of a stream.
    pub(crate) fn take_stream_id(&self) -> Outcome<i32> {
        let mut taken = lock(&self.stream_ids);
        let free = taken.iter().position(|taken| !taken);
        let free = free.ok_or(ACL_ERROR_RT_NO_STREAM_RESOURCE)?;
        taken[free] = true;
        i32::try_from(free).map_err(|_| ACL_ERROR_RT_NO_STREAM_RESOURCE)
    }

    pub(crate) fn free_stream_id(&self, id: i32) {
        let mut ids = lock(&self.stream_ids);
        if let Some(taken) = usize::try_from(id).ok().and_then(|id| ids.get_mut(id)) {
            *taken = false;
        }
    }

    pub(crate) fn streams_left(&self) -> usize {
        lock(&self.stream_ids)
            .iter()
            .filter(|taken| !**taken)
            .count()
    }

    pub(crate) fn events_left(&self) -> usize {
        *lock(&self.events_left)
    }

    /// Takes a hardware event; waits until there is one.
    pub(crate) fn take_event(&self) -> Outcome<u32> {
        let mut left = lock(&self.events_left);
        while *left == 0 {
            self.check()?;
            let woken = self.event_freed.wait_timeout(left, LOOK);
            left = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        *left -= 1;
        u32::try_from(*left).map_err(|_| ACL_ERROR_RT_NO_EVENT_RESOURCE)
    }

    pub(crate) fn free_event(&self) {
        *lock(&self.events_left) += 1;
        self.event_freed.notify_one();
    }
}
