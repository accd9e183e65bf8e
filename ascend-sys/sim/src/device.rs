//! A device: its clock, what it has only so many of, and whether it still answers.

use crate::Outcome;
use crate::clock::{DeviceClock, now_ns};
use crate::config::Config;
use crate::context::{self, Context};
use crate::runtime::runtime;
use ascend_sys::codes::*;
use ascend_sys::types::*;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a waiting thread looks whether the device is lost.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Locks, whoever panicked before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A device that the process sees.
pub(crate) struct Device {
    /// The id the process uses.
    pub(crate) user: i32,
    pub(crate) logical: u32,
    pub(crate) physical: u32,
    pub(crate) clock: DeviceClock,
    /// The ids of streams that are taken.
    stream_ids: Mutex<Vec<bool>>,
    events_left: Mutex<usize>,
    event_freed: Condvar,
    /// 0, or what every call gets.
    lost: AtomicI32,
    primary: Mutex<Primary>,
}

/// The context that threads share which set the device, and how often it was set.
#[derive(Default)]
struct Primary {
    context: Option<Arc<Context>>,
    references: u32,
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
            primary: Mutex::default(),
        }
    }

    /// The device with this id.
    pub(crate) fn by_user(user: i32) -> Outcome<&'static Arc<Self>> {
        let index = usize::try_from(user).map_err(|_| ACL_ERROR_RT_INVALID_DEVICEID)?;
        let device = runtime().devices.get(index);
        device.ok_or(ACL_ERROR_RT_INVALID_DEVICEID)
    }

    /// The device with this logical id, as the driver counts.
    pub(crate) fn by_logical(logical: u32) -> Outcome<&'static Arc<Self>> {
        let mut devices = runtime().devices.iter();
        let device = devices.find(|device| device.logical == logical);
        device.ok_or(ACL_ERROR_RT_INVALID_DEVICEID)
    }

    /// Fails once the device is lost.
    pub(crate) fn check(&self) -> Outcome {
        match self.lost.load(Ordering::Relaxed) {
            0 => Ok(()),
            code => Err(code),
        }
    }

    pub(crate) fn lose(&self, code: i32) {
        self.lost.store(code, Ordering::Relaxed);
    }

    /// The counter now.
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

    /// Takes a hardware event; waits for one where none is left.
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

    /// Makes the primary context the calling thread's.
    pub(crate) fn set(self: &Arc<Self>) -> Outcome {
        let listeners = &runtime().listeners;
        listeners.device(self.user, ACL_RT_DEVICE_STATE_SET_PRE);
        let context = {
            let mut primary = lock(&self.primary);
            primary.references += 1;
            let context = primary.context.get_or_insert_with(|| Context::new(self));
            Arc::clone(context)
        };
        context::set(Some(context));
        listeners.device(self.user, ACL_RT_DEVICE_STATE_SET_POST);
        Ok(())
    }

    /// Takes one setting back, or all; after the last one the primary context is gone with its streams, and a lost device answers again.
    pub(crate) fn reset(self: &Arc<Self>, force: bool) -> Outcome {
        let listeners = &runtime().listeners;
        listeners.device(self.user, ACL_RT_DEVICE_STATE_RESET_PRE);
        let gone = {
            let mut primary = lock(&self.primary);
            let left = primary.references.saturating_sub(1);
            primary.references = if force { 0 } else { left };
            if primary.references == 0 {
                primary.context.take()
            } else {
                None
            }
        };
        if let Some(context) = gone {
            context.destroy();
            self.lost.store(0, Ordering::Relaxed);
        }
        listeners.device(self.user, ACL_RT_DEVICE_STATE_RESET_POST);
        Ok(())
    }
}
