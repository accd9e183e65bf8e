//! The calls of the Ascend runtime: the vendor's, the simulated one, or none. They use the context of the calling thread, and none of them
//! waits for a stream.
#![expect(unsafe_code, reason = "calls the runtime's functions")]

use super::{Bounds, Code, Context, Event, Graph, Stream, Task, whole_ns};
use ascend_sys::rt::{self, thread::rtGetTaskIdAndStreamID};
use ascend_sys::types::{
    ACL_EVENT_RECORDED_STATUS_COMPLETE, ACL_EVENT_TIME_LINE, ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE,
    ACL_REG_TYPE_OTHER, ACL_RT_THREAD_LEVEL, INFO_TYPE_DEV_OSC_FREQUE, INFO_TYPE_SYS_COUNT,
    MODULE_TYPE_SYSTEM, aclFinalizeCallbackFunc, aclrtContext, aclrtDeviceStateCallback,
    aclrtStream, aclrtStreamStateCallback,
};
use ascend_sys::{Acl, Candidates, Hal, Library, LoadError, MissingSymbol};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, Ordering};

/// Code for a function that the installed runtime does not have.
pub(crate) const NOT_SUPPORTED: Code = 200_001;

thread_local! {
    /// True if one of our calls on this thread was refused.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Records that the runtime has refused a call of ours on this thread.
pub(crate) fn set_refused() {
    REFUSED.set(true);
}

/// Returns true if the runtime has refused a call of ours on this thread since this function was last called.
pub(super) fn reset_refused() -> bool {
    REFUSED.replace(false)
}

/// The kind of runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// No runtime. Every call is refused.
    Absent,
    Vendor,
    Simulated,
}

/// A device runtime.
#[derive(Debug)]
pub(crate) struct Runtime {
    kind: Kind,
    acl: Acl,
    /// The function of the rt level that returns a thread's last task.
    task: Result<rtGetTaskIdAndStreamID, MissingSymbol>,
    hal: Hal,
    /// Frequency of the device's counter in kHz, 0 before it was read, or -1 if it cannot be read.
    counter_khz: AtomicI64,
}

impl Default for Runtime {
    /// Returns a runtime that refuses every call, so that launches are only recorded on the host.
    fn default() -> Runtime {
        let none = Library::none();
        Runtime::load(Kind::Absent, &none, &none, &none)
    }
}

impl Runtime {
    /// Opens the vendor's device runtime.
    pub(crate) fn vendor() -> Result<Runtime, LoadError> {
        let library = Library::open(&Candidates::acl())?;
        let hal = Library::open(&Candidates::hal()).unwrap_or(Library::none());
        let rt = Library::open(&Candidates::rt()).unwrap_or(library); // calls of functions that it lacks are refused
        Ok(Runtime::load(Kind::Vendor, &library, &rt, &hal))
    }

    /// Opens the simulated device runtime.
    pub(crate) fn simulator() -> Result<Runtime, LoadError> {
        let library = Library::open_simulator()?;
        Ok(Runtime::load(Kind::Simulated, &library, &library, &library))
    }

    fn load(kind: Kind, library: &Library, rt: &Library, hal: &Library) -> Runtime {
        Runtime {
            kind,
            acl: Acl::load(library),
            task: rt::thread::Thread::load(rt).rtGetTaskIdAndStreamID,
            hal: Hal::load(hal),
            counter_khz: AtomicI64::new(0),
        }
    }

    /// Returns true if this process has no device runtime.
    pub(crate) fn is_absent(&self) -> bool {
        self.kind == Kind::Absent
    }

    /// Returns true if the device runtime is simulated, so that there is no device.
    pub(crate) fn is_simulated(&self) -> bool {
        self.kind == Kind::Simulated
    }

    /// Returns the number that the program gives to the calling thread's device.
    pub(crate) fn device(&self) -> Result<i32, Code> {
        let ask = require(self.acl.device.aclrtGetDevice)?;
        // SAFETY: the pointer is writable during the call.
        written(0, |device| unsafe { ask(device) })
    }

    /// Converts the program's number of a device to the device's number on its host.
    pub(crate) fn physical_device(&self, device: i32) -> Result<i32, Code> {
        let ask = require(self.acl.device.aclrtGetPhyDevIdByUserDevId)?;
        // SAFETY: the pointer is writable during the call.
        written(0, |physical| unsafe { ask(device, physical) })
    }

    /// Converts the program's number of a device to the driver's number. The two differ if not all devices are visible.
    pub(crate) fn logical_device(&self, device: i32) -> i32 {
        let Ok(ask) = self.acl.device.aclrtGetLogicDevIdByUserDevId else {
            return device;
        };
        // SAFETY: the pointer is writable during the call.
        written(0, |logical| unsafe { ask(device, logical) }).unwrap_or(device)
    }

    /// Returns the runtime's context of the calling thread.
    pub(crate) fn context(&self) -> Result<Context, Code> {
        let ask = require(self.acl.context.aclrtGetCurrentContext)?;
        // SAFETY: the pointer is writable during the call.
        let context = written(null_mut(), |context| unsafe { ask(context) })?;
        Ok(Context(context as usize))
    }

    /// Makes `context` the runtime's context of the calling thread.
    pub(crate) fn enter(&self, context: Context) -> Result<(), Code> {
        let enter = require(self.acl.context.aclrtSetCurrentContext)?;
        // SAFETY: the runtime checks the handle; it was the current context of a thread.
        check(unsafe { enter(context.0 as aclrtContext) })
    }

    /// Returns the stream itself, or for a null stream the default stream of the calling thread's context.
    fn resolved(&self, stream: Stream) -> Result<aclrtStream, Code> {
        if stream.0 != 0 {
            return Ok(stream.0 as aclrtStream);
        }
        let ask = require(self.acl.context.aclrtCtxGetCurrentDefaultStream)?;
        // SAFETY: the pointer is writable during the call.
        written(null_mut(), |stream| unsafe { ask(stream) })
    }

    /// Returns the number that a stream has on its device.
    pub(crate) fn stream_id(&self, stream: Stream) -> Result<i32, Code> {
        let stream = self.resolved(stream)?;
        let Ok(ask) = self.acl.stream.aclrtStreamGetId else {
            return Ok(id_of_handle(stream));
        };
        // SAFETY: the pointer is writable during the call; the stream is the one the host launches into.
        written(0, |id| unsafe { ask(stream, id) })
    }

    /// Returns the graph into which a stream is being captured, or `None` if it is not being captured.
    pub(crate) fn capture(&self, stream: Stream) -> Result<Option<Graph>, Code> {
        let stream = self.resolved(stream)?;
        let ask = require(self.acl.graph_info.aclmdlRICaptureGetInfo)?;
        let mut status = 0;
        // SAFETY: both pointers are writable during the call; the stream is the one the host launches into.
        let graph = written(null_mut(), |graph| unsafe {
            ask(stream, &raw mut status, graph)
        })?;
        // An invalidated capture is still a capture until it is ended.
        let captured = status >= ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
        Ok(captured.then_some(Graph(graph as usize)))
    }

    /// Creates a device event, which gets the device's time when a stream reaches it.
    pub(crate) fn create_event(&self) -> Result<Event, Code> {
        // Only events with this flag can be recorded repeatedly, and they do not use an event id of the device.
        let create = require(self.acl.event.aclrtCreateEventExWithFlag)?;
        // SAFETY: the pointer is writable during the call.
        let event = written(null_mut(), |event| unsafe {
            create(event, ACL_EVENT_TIME_LINE)
        })?;
        Ok(Event(event as usize))
    }

    /// Destroys a device event, even if no stream has reached it.
    pub(crate) fn destroy_event(&self, event: Event) {
        if let Ok(destroy) = self.acl.event.aclrtDestroyEvent {
            // SAFETY: the event comes from `create_event` and is destroyed once.
            let _ = check(unsafe { destroy(event.0 as _) });
        }
    }

    /// Puts a device event into a stream. The event may have been in a stream before.
    pub(crate) fn record(&self, event: Event, stream: Stream) -> Result<(), Code> {
        let record = require(self.acl.event.aclrtRecordEvent)?;
        // SAFETY: the event is ours, the stream the one the host launches into.
        check(unsafe { record(event.0 as _, stream.0 as aclrtStream) })
    }

    /// Returns true if the stream has reached the device event.
    pub(crate) fn is_complete(&self, event: Event) -> Result<bool, Code> {
        let ask = require(self.acl.event.aclrtQueryEventStatus)?;
        // SAFETY: the event is ours, the pointer is writable during the call.
        let status = written(0, |status| unsafe { ask(event.0 as _, status) })?;
        Ok(status == ACL_EVENT_RECORDED_STATUS_COMPLETE)
    }

    /// Returns the time at which the stream reached the event, on the device's clock, as bounds: the runtime truncates it to microseconds.
    pub(crate) fn timestamp(&self, event: Event) -> Result<Bounds, Code> {
        let ask = require(self.acl.event.aclrtEventGetTimestamp)?;
        // SAFETY: the event is ours, the pointer is writable during the call.
        let us: u64 = written(0, |us| unsafe { ask(event.0 as _, us) })?;
        let us = i64::try_from(us).map_err(|_| NOT_SUPPORTED)?;
        let ns = us.saturating_mul(1000);
        Ok(Bounds::new(ns, ns.saturating_add(1000)))
    }

    /// Returns the time between two device events in ns. It is more precise than the difference of their timestamps.
    pub(crate) fn elapsed_ns(&self, start: Event, end: Event) -> Result<i64, Code> {
        let ask = require(self.acl.event.aclrtEventElapsedTime)?;
        // SAFETY: the events are ours, the pointer is writable during the call.
        let ms = written(0f32, |ms| unsafe { ask(ms, start.0 as _, end.0 as _) })?;
        Ok(whole_ns((f64::from(ms) * 1e6).round()))
    }

    /// Returns a value about a device from the driver. `info` selects the value.
    fn device_info(&self, logical: i32, info: i32) -> Result<i64, Code> {
        let ask = require(self.hal.halGetDeviceInfo)?;
        let device = u32::try_from(logical).map_err(|_| NOT_SUPPORTED)?;
        // SAFETY: the pointer is writable during the call.
        written(0, |value| unsafe {
            ask(device, MODULE_TYPE_SYSTEM, info, value)
        })
    }

    fn counter_khz(&self, logical: i32) -> Result<i64, Code> {
        if self.counter_khz.load(Ordering::Relaxed) == 0 {
            let khz = self.device_info(logical, INFO_TYPE_DEV_OSC_FREQUE);
            let khz = khz.ok().filter(|khz| *khz > 0).unwrap_or(-1);
            self.counter_khz.store(khz, Ordering::Relaxed);
        }
        match self.counter_khz.load(Ordering::Relaxed) {
            -1 => Err(NOT_SUPPORTED),
            khz => Ok(khz),
        }
    }

    /// Reads the device's clock through the driver, without a stream. Returns bounds of the time in ns.
    pub(crate) fn clock(&self, device: i32) -> Result<Bounds, Code> {
        let logical = self.logical_device(device);
        let khz = self.counter_khz(logical)?;
        let count = self.device_info(logical, INFO_TYPE_SYS_COUNT)?;
        let ns = i128::from(count) * 1_000_000 / i128::from(khz);
        let ns = i64::try_from(ns).map_err(|_| NOT_SUPPORTED)?;
        Ok(Bounds::new(ns, ns.saturating_add(1 + 1_000_000 / khz)))
    }

    /// Creates a stream on the device for our own use.
    pub(crate) fn create_stream(&self) -> Result<Stream, Code> {
        let create = require(self.acl.stream.aclrtCreateStream)?;
        // SAFETY: the pointer is writable during the call.
        let stream = written(null_mut(), |stream| unsafe { create(stream) })?;
        Ok(Stream(stream as usize))
    }

    /// Destroys one of our own streams, which `create_stream` has created.
    pub(crate) fn destroy_stream(&self, stream: Stream) {
        if let Ok(destroy) = self.acl.lifecycle.aclrtDestroyStream {
            // SAFETY: the stream comes from `create_stream` and is destroyed once.
            let _ = check(unsafe { destroy(stream.0 as aclrtStream) });
        }
    }

    /// Returns the code of the calling thread's last failed call of the runtime, or 0 if none failed since it was last cleared.
    pub(crate) fn last_error(&self) -> Code {
        let Ok(peek) = self.acl.thread.aclrtPeekAtLastError else {
            return 0;
        };
        // SAFETY: the argument is an integer.
        unsafe { peek(ACL_RT_THREAD_LEVEL) }
    }

    /// Clears the runtime's last error for the calling thread.
    pub(crate) fn clear_last_error(&self) {
        // If the error could not be read before our calls, it may be the program's.
        if self.acl.thread.aclrtPeekAtLastError.is_ok()
            && let Ok(clear) = self.acl.thread.aclrtGetLastError
        {
            // SAFETY: the argument is an integer.
            unsafe { clear(ACL_RT_THREAD_LEVEL) };
        }
    }

    /// Returns the last task that the calling thread submitted to a stream, if the runtime knows it.
    pub(crate) fn last_task(&self) -> Option<Task> {
        let mut stream = 0;
        let id = if let Ok(ask) = self.task {
            // SAFETY: both pointers are writable during the call.
            written(0, |id| unsafe { ask(id, &raw mut stream) })
        } else {
            let ask = self.acl.thread.aclrtGetThreadLastTaskId.ok()?;
            // SAFETY: the pointer is writable during the call.
            written(0, |id| unsafe { ask(id) })
        };
        Some(Task {
            stream,
            id: id.ok()?,
        })
    }

    /// Registers callbacks with the runtime: for the creation and destruction of streams, for resets of devices and for the end of the runtime. Returns true
    /// if all creations and destructions of streams will be reported. The callbacks get no user data.
    pub(crate) fn watch(
        &self,
        on_device: aclrtDeviceStateCallback,
        on_stream: aclrtStreamStateCallback,
        on_finalize: aclFinalizeCallbackFunc,
    ) -> bool {
        let name = c"sa_profile".as_ptr();
        if let Ok(register) = self.acl.device.aclrtRegDeviceStateCallback {
            // SAFETY: the name is a C string, and the callback is a static function without user data.
            let _ = check(unsafe { register(name, on_device, null_mut()) });
        }
        if let Ok(register) = self.acl.init.aclFinalizeCallbackRegister {
            // SAFETY: as above.
            let _ = check(unsafe { register(ACL_REG_TYPE_OTHER, on_finalize, null_mut()) });
        }
        let Ok(register) = self.acl.stream.aclrtRegStreamStateCallback else {
            return false;
        };
        // SAFETY: as above.
        check(unsafe { register(name, on_stream, null_mut()) }).is_ok()
    }
}

/// Returns true if this error code of the runtime means that no call for the device can succeed any more: a kernel failed or hangs, or memory or the device
/// itself failed. Full streams, timeouts and ended captures are temporary.
pub(crate) fn is_lost(code: Code) -> bool {
    let is_listed = [507_010, 507_014, 507_015, 507_048, 507_049, 507_899].contains(&code);
    is_listed || (507_053..=507_057).contains(&code)
}

/// Converts the code that the runtime returned to a result, and records that it refused our call.
fn check(code: Code) -> Result<(), Code> {
    if code != 0 {
        set_refused();
        return Err(code);
    }
    Ok(())
}

/// Calls a function of the runtime that writes its result to a variable. Returns the variable, which is `initial` before the call.
fn written<T>(initial: T, call: impl FnOnce(*mut T) -> Code) -> Result<T, Code> {
    let mut value = initial;
    check(call(&raw mut value))?;
    Ok(value)
}

fn require<F>(function: Result<F, MissingSymbol>) -> Result<F, Code> {
    function.map_err(|_| NOT_SUPPORTED)
}

/// Makes a number for a stream from its handle, for a runtime that has no stream ids (CANN 8.0). Handles are addresses, and two live ones differ in these
/// bits.
fn id_of_handle(stream: aclrtStream) -> i32 {
    const ALIGNMENT_BITS: u32 = 4;
    let [a, b, c, d, ..] = ((stream as u64) >> ALIGNMENT_BITS).to_le_bytes();
    i32::from_le_bytes([a, b, c, d & 0x7f])
}
