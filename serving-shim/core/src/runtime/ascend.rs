//! The Ascend runtime behind [`DeviceRuntime`].
#![expect(unsafe_code, reason = "calls the runtime's functions")]

use crate::hooks;
use crate::runtime::{
    Code, Context, DeviceRuntime, DeviceTime, Event, Graph, Stream, Task, thread,
};
use ascend_sys::rt::{self, thread::rtGetTaskIdAndStreamID};
use ascend_sys::types::{
    ACL_EVENT_RECORDED_STATUS_COMPLETE, ACL_EVENT_TIME_LINE, ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE,
    ACL_REG_TYPE_OTHER, ACL_RT_DEVICE_STATE_RESET_PRE, ACL_RT_STREAM_STATE_CREATE_POST,
    ACL_RT_STREAM_STATE_DESTROY_PRE, ACL_RT_THREAD_LEVEL, INFO_TYPE_DEV_OSC_FREQUE,
    INFO_TYPE_SYS_COUNT, MODULE_TYPE_SYSTEM, aclrtContext, aclrtDeviceState, aclrtStream,
    aclrtStreamState,
};
use ascend_sys::{Acl, Candidates, Hal, Library, LoadError, MissingSymbol, codes};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, Ordering};

/// What this module returns where the installed runtime lacks a function.
const NOT_SUPPORTED: Code = 200_001;
/// Longest kernel name that is asked for.
const NAME_BYTES: usize = 1024;

/// The vendor's runtime, or the simulated one.
#[derive(Debug)]
pub(crate) struct AscendRuntime {
    acl: Acl,
    /// What of the rt level tells a thread's last task.
    task: Result<rtGetTaskIdAndStreamID, MissingSymbol>,
    hal: Option<Hal>,
    simulated: bool,
    /// Frequency of the device's counter in kHz; 0 before it was asked, -1 if it cannot be.
    counter_khz: AtomicI64,
}

impl AscendRuntime {
    pub(crate) fn vendor() -> Result<AscendRuntime, LoadError> {
        let library = Library::open(&Candidates::acl())?;
        let hal = Library::open(&Candidates::hal()).ok();
        let rt = Library::open(&Candidates::rt());
        let rt = rt.as_ref().unwrap_or(&library); // it lacks what it lacks
        Ok(AscendRuntime::of(&library, rt, hal.as_ref(), false))
    }

    pub(crate) fn simulator() -> Result<AscendRuntime, LoadError> {
        let library = Library::open_simulator()?;
        Ok(AscendRuntime::of(&library, &library, Some(&library), true))
    }

    fn of(
        library: &Library,
        rt: &Library,
        hal: Option<&Library>,
        simulated: bool,
    ) -> AscendRuntime {
        AscendRuntime {
            acl: Acl::load(library),
            task: rt::thread::Thread::load(rt).rtGetTaskIdAndStreamID,
            hal: hal.map(Hal::load),
            simulated,
            counter_khz: AtomicI64::new(0),
        }
    }

    fn device_info(&self, device: i32, info: i32) -> Result<i64, Code> {
        let hal = self.hal.as_ref().ok_or(NOT_SUPPORTED)?;
        let ask = there(hal.halGetDeviceInfo)?;
        let device = u32::try_from(device).map_err(|_| NOT_SUPPORTED)?;
        let mut value = 0;
        // SAFETY: `value` is writable for the call.
        done(unsafe { ask(device, MODULE_TYPE_SYSTEM, info, &raw mut value) })?;
        Ok(value)
    }

    fn counter_khz(&self, device: i32) -> Result<i64, Code> {
        match self.counter_khz.load(Ordering::Relaxed) {
            0 => {
                let khz = self.device_info(device, INFO_TYPE_DEV_OSC_FREQUE);
                let known = khz.ok().filter(|khz| *khz > 0);
                self.counter_khz
                    .store(known.unwrap_or(-1), Ordering::Relaxed);
                known.ok_or(NOT_SUPPORTED)
            }
            -1 => Err(NOT_SUPPORTED),
            khz => Ok(khz),
        }
    }

    /// The device's number for the HAL, which counts them otherwise than the program where not all are visible.
    fn logic_device(&self, device: i32) -> i32 {
        let mut logic = device;
        if let Ok(ask) = self.acl.device.aclrtGetLogicDevIdByUserDevId {
            // SAFETY: `logic` is writable for the call.
            if done(unsafe { ask(device, &raw mut logic) }).is_err() {
                return device;
            }
        }
        logic
    }

    /// The stream itself; the null stream is the context's default one.
    fn resolved(&self, stream: Stream) -> Result<aclrtStream, Code> {
        if stream.0 != 0 {
            return Ok(stream_pointer(stream));
        }
        let ask = there(self.acl.context.aclrtCtxGetCurrentDefaultStream)?;
        let mut stream = null_mut();
        // SAFETY: `stream` is writable for the call.
        done(unsafe { ask(&raw mut stream) })?;
        Ok(stream)
    }
}

/// The outcome of a call.
fn done(code: Code) -> Result<(), Code> {
    match code {
        0 => Ok(()),
        code => {
            thread::refused();
            Err(code)
        }
    }
}

fn there<F>(function: Result<F, MissingSymbol>) -> Result<F, Code> {
    function.map_err(|_| NOT_SUPPORTED)
}

/// A number for a stream where the runtime has none (CANN 8.0): handles are addresses, and two that live differ in these bits.
fn id_of_handle(stream: aclrtStream) -> i32 {
    const ALIGNMENT_BITS: u32 = 4;
    let [a, b, c, d, ..] = ((stream as u64) >> ALIGNMENT_BITS).to_le_bytes();
    i32::from_le_bytes([a, b, c, d & 0x7f])
}

fn stream_pointer(stream: Stream) -> aclrtStream {
    stream.0 as aclrtStream
}

impl DeviceRuntime for AscendRuntime {
    fn is_simulated(&self) -> bool {
        self.simulated
    }

    fn device(&self) -> Result<i32, Code> {
        let mut device = 0;
        let ask = there(self.acl.device.aclrtGetDevice)?;
        // SAFETY: `device` is writable for the call.
        done(unsafe { ask(&raw mut device) })?;
        Ok(device)
    }

    fn physical_device(&self, device: i32) -> Result<i32, Code> {
        let mut physical = 0;
        let ask = there(self.acl.device.aclrtGetPhyDevIdByUserDevId)?;
        // SAFETY: `physical` is writable for the call.
        done(unsafe { ask(device, &raw mut physical) })?;
        Ok(physical)
    }

    fn logical_device(&self, device: i32) -> Result<i32, Code> {
        Ok(self.logic_device(device))
    }

    fn context(&self) -> Result<Context, Code> {
        let mut context = null_mut();
        let ask = there(self.acl.context.aclrtGetCurrentContext)?;
        // SAFETY: `context` is writable for the call.
        done(unsafe { ask(&raw mut context) })?;
        Ok(Context(context as usize))
    }

    fn enter(&self, context: Context) -> Result<(), Code> {
        let enter = there(self.acl.context.aclrtSetCurrentContext)?;
        // SAFETY: the runtime checks the handle; it was the current context of a thread.
        done(unsafe { enter(context.0 as aclrtContext) })
    }

    fn stream_id(&self, stream: Stream) -> Result<i32, Code> {
        let stream = self.resolved(stream)?;
        let Ok(ask) = self.acl.stream.aclrtStreamGetId else {
            return Ok(id_of_handle(stream));
        };
        let mut id = 0;
        // SAFETY: `id` is writable for the call; the stream is the one the host launches into.
        done(unsafe { ask(stream, &raw mut id) })?;
        Ok(id)
    }

    fn capture(&self, stream: Stream) -> Result<Option<Graph>, Code> {
        let stream = self.resolved(stream)?;
        let (mut status, mut graph) = (0, null_mut());
        let ask = there(self.acl.graph_info.aclmdlRICaptureGetInfo)?;
        // SAFETY: both are writable for the call; the stream is the one the host launches into.
        done(unsafe { ask(stream, &raw mut status, &raw mut graph) })?;
        // An invalidated capture is one still, until it is ended.
        let captured = status >= ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
        Ok(captured.then_some(Graph(graph as usize)))
    }

    fn create_event(&self) -> Result<Event, Code> {
        let mut event = null_mut();
        // Only such events may be recorded again and again, and take no event id of the device.
        let create = there(self.acl.event.aclrtCreateEventExWithFlag)?;
        // SAFETY: `event` is writable for the call.
        done(unsafe { create(&raw mut event, ACL_EVENT_TIME_LINE) })?;
        Ok(Event(event as usize))
    }

    fn destroy_event(&self, event: Event) {
        if let Ok(destroy) = self.acl.event.aclrtDestroyEvent {
            // SAFETY: the event was made by `create_event` and is given back once.
            let _ = done(unsafe { destroy(event.0 as _) });
        }
    }

    fn record(&self, event: Event, stream: Stream) -> Result<(), Code> {
        let record = there(self.acl.event.aclrtRecordEvent)?;
        // SAFETY: the event is ours, the stream the one the host launches into.
        done(unsafe { record(event.0 as _, stream_pointer(stream)) })
    }

    fn is_complete(&self, event: Event) -> Result<bool, Code> {
        let mut status = 0;
        let ask = there(self.acl.event.aclrtQueryEventStatus)?;
        // SAFETY: the event is ours, `status` is writable for the call.
        done(unsafe { ask(event.0 as _, &raw mut status) })?;
        Ok(status == ACL_EVENT_RECORDED_STATUS_COMPLETE)
    }

    fn timestamp(&self, event: Event) -> Result<DeviceTime, Code> {
        let mut us = 0u64;
        let ask = there(self.acl.event.aclrtEventGetTimestamp)?;
        // SAFETY: the event is ours, `us` is writable for the call.
        done(unsafe { ask(event.0 as _, &raw mut us) })?;
        Ok(DeviceTime {
            ns: us.saturating_mul(1000),
            grain_ns: 1000,
        })
    }

    fn elapsed_ns(&self, start: Event, end: Event) -> Result<i64, Code> {
        let mut ms = 0f32;
        let ask = there(self.acl.event.aclrtEventElapsedTime)?;
        // SAFETY: the events are ours, `ms` is writable for the call.
        done(unsafe { ask(&raw mut ms, start.0 as _, end.0 as _) })?;
        Ok(nanoseconds(ms))
    }

    fn clock(&self, device: i32) -> Result<DeviceTime, Code> {
        let device = self.logic_device(device);
        let khz = self.counter_khz(device)?;
        let count = self.device_info(device, INFO_TYPE_SYS_COUNT)?;
        let ns = i128::from(count) * 1_000_000 / i128::from(khz);
        Ok(DeviceTime {
            ns: u64::try_from(ns).map_err(|_| NOT_SUPPORTED)?,
            grain_ns: 1 + 1_000_000 / khz.unsigned_abs(),
        })
    }

    fn create_stream(&self) -> Result<Stream, Code> {
        let mut stream = null_mut();
        let create = there(self.acl.stream.aclrtCreateStream)?;
        // SAFETY: `stream` is writable for the call.
        done(unsafe { create(&raw mut stream) })?;
        Ok(Stream(stream as usize))
    }

    fn destroy_stream(&self, stream: Stream) {
        if let Ok(destroy) = self.acl.lifecycle.aclrtDestroyStream {
            // SAFETY: the stream was made by `create_stream` and is given back once.
            let _ = done(unsafe { destroy(stream_pointer(stream)) });
        }
    }

    fn function_name(&self, function: usize) -> Option<String> {
        let ask = self.acl.kernel.aclrtGetFunctionName.as_ref().ok()?;
        let mut name = [0u8; NAME_BYTES];
        let length = u32::try_from(NAME_BYTES - 1).ok()?;
        // SAFETY: `name` is writable for one byte more than `length`; the handle is the one the host launches.
        let asked = unsafe { ask(function as _, length, name.as_mut_ptr().cast::<c_char>()) };
        done(asked).ok()?;
        let text = CStr::from_bytes_until_nul(&name).ok()?;
        (!text.is_empty()).then(|| text.to_string_lossy().into_owned())
    }

    fn code_name(&self, code: Code) -> Option<&'static str> {
        codes::name_of(code)
    }

    fn not_supported(&self) -> Code {
        NOT_SUPPORTED
    }

    fn last_error(&self) -> Code {
        let Ok(peek) = self.acl.thread.aclrtPeekAtLastError else {
            return 0;
        };
        // SAFETY: takes an integer.
        unsafe { peek(ACL_RT_THREAD_LEVEL) }
    }

    fn forget_last_error(&self) {
        // Where the error before could not be looked at it may be the program's.
        if self.acl.thread.aclrtPeekAtLastError.is_ok()
            && let Ok(take) = self.acl.thread.aclrtGetLastError
        {
            // SAFETY: takes an integer.
            unsafe { take(ACL_RT_THREAD_LEVEL) };
        }
    }

    fn last_task(&self) -> Option<Task> {
        let (mut id, mut stream) = (0, 0);
        if let Ok(ask) = self.task {
            // SAFETY: both are writable for the call.
            done(unsafe { ask(&raw mut id, &raw mut stream) }).ok()?;
        } else {
            let ask = self.acl.thread.aclrtGetThreadLastTaskId.ok()?;
            // SAFETY: `id` is writable for the call.
            done(unsafe { ask(&raw mut id) }).ok()?;
        }
        Some(Task { stream, id })
    }

    fn watch(&self) -> bool {
        let name = c"sa_profile".as_ptr();
        if let Ok(register) = self.acl.device.aclrtRegDeviceStateCallback {
            // SAFETY: the name is a C string, the callback a static function that takes no arguments of ours.
            let _ = done(unsafe { register(name, Some(device_changes), null_mut()) });
        }
        let mut reports_streams = false;
        if let Ok(register) = self.acl.stream.aclrtRegStreamStateCallback {
            // SAFETY: as above.
            reports_streams =
                done(unsafe { register(name, Some(stream_changes), null_mut()) }).is_ok();
        }
        if let Ok(register) = self.acl.init.aclFinalizeCallbackRegister {
            // SAFETY: the callback is a static function that takes no data of ours.
            let _ = done(unsafe { register(ACL_REG_TYPE_OTHER, Some(finalizes), null_mut()) });
        }
        reports_streams
    }

    fn is_lost(&self, code: Code) -> bool {
        // What sticks: a kernel that failed or hangs, memory or the device itself. Full streams, timeouts and ended captures pass.
        matches!(
            code,
            507_010 | 507_014 | 507_015 | 507_048 | 507_049 | 507_053..=507_057 | 507_899
        )
    }
}

/// Runs what a callback of the runtime does; nothing of ours may unwind into it.
fn guarded(act: impl FnOnce() + std::panic::UnwindSafe) {
    let _ = std::panic::catch_unwind(act); // a panic has been reported by its hook
}

unsafe extern "C" fn device_changes(device: i32, state: aclrtDeviceState, _: *mut c_void) {
    if state == ACL_RT_DEVICE_STATE_RESET_PRE {
        guarded(|| hooks::before_reset(device));
    }
}

unsafe extern "C" fn stream_changes(stream: aclrtStream, state: aclrtStreamState, _: *mut c_void) {
    match state {
        ACL_RT_STREAM_STATE_CREATE_POST => guarded(|| hooks::stream_created(stream)),
        ACL_RT_STREAM_STATE_DESTROY_PRE => guarded(|| hooks::stream_destroyed(stream)),
        _ => {}
    }
}

unsafe extern "C" fn finalizes(_: *mut c_void) -> Code {
    guarded(hooks::before_finalize);
    0
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a conversion of f64 to i64 saturates"
)]
fn nanoseconds(ms: f32) -> i64 {
    (f64::from(ms) * 1e6).round() as i64
}
