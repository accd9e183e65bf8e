//! Events, which record the device's time at a point of a stream. This module knows which calls are allowed on which event, and when an event has completed.

use crate::device::Device;
use crate::handle::Handle;
use crate::wait::{CHECK_INTERVAL, lock};
use crate::{Outcome, fail_if};
use ascend_sys::codes::*;
use ascend_sys::types::*;
use records::Records;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

mod records;

pub(crate) struct Event {
    pub(crate) handle: Handle,
    flags: u32,
    /// True if it was created with `aclrtCreateEventExWithFlag`. Such an event can be recorded repeatedly.
    pub(crate) ex: bool,
    device: Arc<Device>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    records: Records,
    waits: u64,
    waited: u64,
    /// Number of threads that wait for a change. If it is 0, the system call that wakes them is left out.
    waiters: u32,
    captured: Weak<CaptureStatus>,
}

/// The state of a capture, shared with the events that were recorded in it.
#[derive(Default)]
pub(crate) struct CaptureStatus {
    invalid: AtomicBool,
    /// True once its streams are no longer captured. Events may still refer to it.
    ended: AtomicBool,
}

impl CaptureStatus {
    /// Invalidates the capture.
    pub(crate) fn invalidate(&self) {
        self.invalid.store(true, Ordering::Release);
    }

    pub(crate) fn is_invalid(&self) -> bool {
        self.invalid.load(Ordering::Acquire)
    }

    /// Fails if the capture is invalid.
    pub(crate) fn check(&self) -> Outcome {
        let is_invalid = self.is_invalid();
        fail_if(is_invalid, ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED)
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }
}

impl Event {
    pub(crate) fn new(handle: Handle, device: &Arc<Device>, flags: u32, ex: bool) -> Self {
        Self {
            handle,
            flags,
            ex,
            device: Arc::clone(device),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn is_timed(&self) -> bool {
        self.flags & ACL_EVENT_TIME_LINE != 0
    }

    /// Starts a record in a stream. Returns its number.
    pub(crate) fn begin_record(&self) -> u64 {
        let mut state = lock(&self.state);
        state.captured = Weak::new();
        state.records.add()
    }

    /// Sets the capture in which the event was recorded.
    pub(crate) fn record_captured(&self, capture: &Arc<CaptureStatus>) {
        lock(&self.state).captured = Arc::downgrade(capture);
    }

    /// Starts a wait of a stream. Returns the number of the record for which the stream waits, or 0 if there is none.
    pub(crate) fn begin_wait(&self) -> u64 {
        let mut state = lock(&self.state);
        state.waits += 1;
        state.records.awaited()
    }

    /// Returns the number of the last record.
    pub(crate) fn last_record(&self) -> u64 {
        lock(&self.state).records.last()
    }

    /// Fails for Ex events, on which resets and the older queries are forbidden.
    pub(crate) fn not_ex(&self) -> Outcome {
        fail_if(self.ex, ACL_ERROR_RT_FEATURE_NOT_SUPPORT)
    }

    /// Returns the capture in which the event was last recorded, if it is still active.
    pub(crate) fn capture(&self) -> Option<Arc<CaptureStatus>> {
        let capture = lock(&self.state).captured.upgrade()?;
        (!capture.ended.load(Ordering::Acquire)).then_some(capture)
    }

    /// Fails if the event is captured, and invalidates the capture, because the host must not query such an event.
    pub(crate) fn not_captured(&self) -> Outcome {
        let Some(capture) = self.capture() else {
            return Ok(());
        };
        capture.invalidate();
        Err(ACL_ERROR_RT_EVENT_CAPTURED)
    }

    /// Returns true if the event has completed. An event that was never recorded counts as complete only if it is an Ex event.
    pub(crate) fn is_complete(&self) -> Outcome<bool> {
        self.not_captured()?;
        let state = lock(&self.state);
        Ok(state.records.is_complete() && (self.ex || state.records.is_recorded()))
    }

    /// Returns true if all waits of streams for the event are over.
    pub(crate) fn waits_are_over(&self) -> Outcome<bool> {
        self.not_ex()?;
        self.not_captured()?;
        let state = lock(&self.state);
        Ok(state.waits == state.waited)
    }

    /// Returns the device's time at the event's last record.
    pub(crate) fn ticks(&self) -> Outcome<u64> {
        self.not_captured()?;
        fail_if(!self.is_timed(), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID)?;
        let state = lock(&self.state);
        fail_if(!state.records.is_recorded(), ACL_ERROR_RT_INTERNAL_ERROR)?;
        if !state.records.is_complete() {
            return Err(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
        }
        Ok(state.records.ticks())
    }

    pub(crate) fn us(&self) -> Outcome<u64> {
        Ok(self.device.clock.us(self.ticks()?))
    }

    pub(crate) fn elapsed_ms(start: &Self, end: &Self) -> Outcome<f32> {
        let (from, to) = (start.ticks()?, end.ticks()?);
        Ok(end.device.clock.elapsed_ms(from, to))
    }

    /// Waits until the event has completed.
    pub(crate) fn synchronize(&self) -> Outcome {
        self.not_captured()?;
        let mut state = lock(&self.state);
        let wanted = state.records.last();
        loop {
            if state.records.has_completed(wanted) {
                return Ok(());
            }
            self.device.check()?;
            state = self.wait(state);
        }
    }

    /// Completes a record that the executor has reached.
    pub(crate) fn complete(&self, record: u64, ticks: u64) {
        let mut state = lock(&self.state);
        state.records.complete(record, ticks);
        self.wake(&state);
    }

    /// Drops a record that no executor will reach.
    pub(crate) fn drop_record(&self, record: u64) {
        let mut state = lock(&self.state);
        state.records.drop(record);
        self.wake(&state);
    }

    /// Drops a wait that no executor will reach.
    pub(crate) fn drop_wait(&self) {
        lock(&self.state).waited += 1;
    }

    fn wake(&self, state: &State) {
        if state.waiters > 0 {
            self.changed.notify_all();
        }
    }

    fn wait<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiters += 1;
        let woken = self.changed.wait_timeout(state, CHECK_INTERVAL);
        let mut state = woken.unwrap_or_else(PoisonError::into_inner).0;
        state.waiters -= 1;
        state
    }

    /// Resets the event when the executor has reached a reset.
    pub(crate) fn reset(&self, covers: Option<u64>) {
        lock(&self.state).records.reset(covers);
    }

    /// Waits for a record on the thread of a stream, as long as that stream `executes`. The event may belong to another device.
    pub(crate) fn wait_on_device(&self, record: u64, executes: impl Fn() -> bool) {
        let mut state = lock(&self.state);
        while !state.records.has_completed(record) && self.device.check().is_ok() && executes() {
            state = self.wait(state);
        }
        state.waited += 1;
    }
}
