//! An event: the device's time at a point of a stream. What is allowed on which event, and when it has completed.

use crate::Outcome;
use crate::capture::Capture;
use crate::clock::now_ns;
use crate::context::Context;
use crate::device::{Device, LOOK, lock};
use crate::handle::Handle;
use crate::records::Records;
use crate::runtime::runtime;
use crate::stream::{Stream, nap};
use crate::work::Work;
use ascend_sys::codes::*;
use ascend_sys::types::*;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

pub(crate) struct Event {
    pub(crate) handle: Handle,
    flags: u32,
    /// Created with `aclrtCreateEventExWithFlag`: can be recorded again and again, and takes no hardware event.
    ex: bool,
    device: Arc<Device>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    records: Records,
    waits: u64,
    waited: u64,
    hardware_id: Option<u32>,
    /// Threads that wait for a change: waking nobody is a system call too.
    waiters: u32,
    captured: Weak<Capture>,
}

impl Event {
    pub(crate) fn create(context: &Context, flags: u32, ex: bool) -> Arc<Self> {
        runtime().events.add(|handle| {
            Arc::new(Self {
                handle,
                flags,
                ex,
                device: Arc::clone(&context.device),
                state: Mutex::default(),
                changed: Condvar::new(),
            })
        })
    }

    pub(crate) fn by_handle(event: aclrtEvent) -> Outcome<Arc<Self>> {
        let found = runtime().events.get(Handle::of(event));
        found.ok_or(ACL_ERROR_RT_PARAM_INVALID)
    }

    fn is_timed(&self) -> bool {
        self.flags & ACL_EVENT_TIME_LINE != 0
    }

    /// Records it in a stream.
    pub(crate) fn record(self: &Arc<Self>, stream: &Arc<Stream>) -> Outcome {
        if stream.of_model {
            return Err(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
        }
        if let Some(capture) = stream.capture() {
            return self.record_captured(stream, &capture);
        }
        self.take_hardware_event()?;
        let record = {
            let mut state = lock(&self.state);
            state.captured = Weak::new();
            state.records.add()
        };
        let event = Arc::clone(self);
        let submitted = stream.submit(Work::Record { event, record });
        submitted.inspect_err(|_| self.drop_record(record))
    }

    /// A timed event is not captured: the call succeeds and does nothing.
    fn record_captured(self: &Arc<Self>, stream: &Arc<Stream>, capture: &Arc<Capture>) -> Outcome {
        if !self.ex {
            return Err(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
        }
        if self.is_timed() {
            return Ok(());
        }
        capture.record(stream, self)?;
        lock(&self.state).captured = Arc::downgrade(capture);
        Ok(())
    }

    /// An event that streams wait for takes a hardware event when it is first recorded; waits where none is left.
    fn take_hardware_event(&self) -> Outcome {
        let takes = !self.ex && self.flags & ACL_EVENT_SYNC != 0;
        if !takes || lock(&self.state).hardware_id.is_some() {
            return Ok(());
        }
        let id = self.device.take_event()?;
        lock(&self.state).hardware_id = Some(id);
        Ok(())
    }

    /// The stream's later work begins once what it is recorded for now is done. An event that was never recorded holds nobody up.
    pub(crate) fn wait_in(self: &Arc<Self>, stream: &Arc<Stream>) -> Outcome {
        match (self.capture(), stream.capture()) {
            (Some(capture), _) => return capture.wait(stream, self),
            (None, Some(capture)) => {
                capture.invalidate();
                return Err(ACL_ERROR_RT_CAPTURE_DEPENDENCY);
            }
            (None, None) => {}
        }
        let record = {
            let mut state = lock(&self.state);
            state.waits += 1;
            state.records.awaited()
        };
        let event = Arc::clone(self);
        let submitted = stream.submit(Work::Wait { event, record });
        submitted.inspect_err(|_| self.drop_wait())
    }

    /// On Ex events this and the older queries are forbidden.
    pub(crate) fn reset_in(self: &Arc<Self>, stream: &Arc<Stream>) -> Outcome {
        self.not_ex()?;
        self.not_captured()?;
        let covers = match stream.capture() {
            Some(_) => None,
            None => Some(lock(&self.state).records.last()),
        };
        let event = Arc::clone(self);
        stream.submit(Work::Reset { event, covers })
    }

    pub(crate) fn not_ex(&self) -> Outcome {
        if self.ex {
            return Err(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
        }
        Ok(())
    }

    /// The capture that it was recorded in last, as long as that is under way.
    fn capture(&self) -> Option<Arc<Capture>> {
        let capture = lock(&self.state).captured.upgrade()?;
        (!capture.has_ended()).then_some(capture)
    }

    /// Asking about a captured event breaks the capture.
    pub(crate) fn not_captured(&self) -> Outcome {
        let Some(capture) = self.capture() else {
            return Ok(());
        };
        capture.invalidate();
        Err(ACL_ERROR_RT_EVENT_CAPTURED)
    }

    /// Whether it has completed. An Ex event that was never recorded has; another has not.
    pub(crate) fn is_complete(&self) -> Outcome<bool> {
        self.not_captured()?;
        let state = lock(&self.state);
        Ok(state.records.is_complete() && (self.ex || state.records.is_recorded()))
    }

    /// Whether no stream waits for it any more.
    pub(crate) fn is_waited_for(&self) -> Outcome<bool> {
        self.not_ex()?;
        self.not_captured()?;
        let state = lock(&self.state);
        Ok(state.waits == state.waited)
    }

    /// The device's time at its last record.
    pub(crate) fn ticks(&self) -> Outcome<u64> {
        self.not_captured()?;
        if !self.is_timed() {
            return Err(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
        }
        let state = lock(&self.state);
        if !state.records.is_recorded() {
            return Err(ACL_ERROR_RT_INTERNAL_ERROR);
        }
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

    pub(crate) fn hardware_id(&self) -> Outcome<u32> {
        let id = lock(&self.state).hardware_id;
        id.ok_or(ACL_ERROR_RT_FEATURE_NOT_SUPPORT)
    }

    /// Waits until it has completed.
    pub(crate) fn synchronize(&self, timeout_ms: Option<u64>) -> Outcome {
        self.not_captured()?;
        let began_ns = now_ns();
        let mut state = lock(&self.state);
        let wanted = state.records.last();
        loop {
            let (there, unseen_ns) = (
                state.records.has_completed(wanted),
                state.records.unseen_ns(),
            );
            if there && unseen_ns == 0 {
                return Ok(());
            }
            self.device.check()?;
            let nap = nap(began_ns, timeout_ms).ok_or(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT)?;
            let nap = if there {
                nap.min(Duration::from_nanos(unseen_ns))
            } else {
                nap
            };
            state = self.wait(state, nap);
        }
    }

    /// The executor has come to a record.
    pub(crate) fn complete(&self, record: u64, ticks: u64, visible_ns: u64) {
        let mut state = lock(&self.state);
        state.records.complete(record, ticks, visible_ns);
        self.wake(&state);
    }

    /// No executor will come to a record.
    pub(crate) fn drop_record(&self, record: u64) {
        let mut state = lock(&self.state);
        state.records.drop(record);
        self.wake(&state);
    }

    /// No executor will come to a wait.
    pub(crate) fn drop_wait(&self) {
        lock(&self.state).waited += 1;
    }

    fn wake(&self, state: &State) {
        if state.waiters > 0 {
            self.changed.notify_all();
        }
    }

    fn wait<'a>(&self, mut state: MutexGuard<'a, State>, nap: Duration) -> MutexGuard<'a, State> {
        state.waiters += 1;
        let woken = self.changed.wait_timeout(state, nap);
        let mut state = woken.unwrap_or_else(PoisonError::into_inner).0;
        state.waiters -= 1;
        state
    }

    /// The executor has come to a reset.
    pub(crate) fn reset(&self, covers: Option<u64>) {
        lock(&self.state).records.reset(covers);
    }

    /// The executor of a stream has come to a wait. The event may be of another device.
    pub(crate) fn wait_on_device(&self, record: u64, stream: &Stream) {
        let mut state = lock(&self.state);
        while !state.records.has_completed(record)
            && self.device.check().is_ok()
            && stream.executes()
        {
            state = self.wait(state, LOOK);
        }
        state.waited += 1;
    }

    /// Does not wait: a record under way completes unseen.
    pub(crate) fn destroy(&self) -> Outcome {
        let gone = runtime().events.remove(self.handle);
        if gone.is_none() {
            return Err(ACL_ERROR_RT_PARAM_INVALID);
        }
        if lock(&self.state).hardware_id.take().is_some() {
            self.device.free_event();
        }
        Ok(())
    }
}
