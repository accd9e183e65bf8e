//! The shim of this process, which the first recorded launch or capture creates and the exit ends. Also handles the runtime's and the interposers' reports about
//! streams and devices.

use crate::config::Config;
use crate::device::Device;
use crate::gate;
use crate::pending::Pending;
use crate::runtime::{Context, Stream, stream_cache, thread};
use crate::shim::{Shim, after_fork, is_forked};
use crate::tally::write_instant;
use crate::timing::Timing;
use ascend_sys::types::{
    ACL_RT_DEVICE_STATE_RESET_PRE, ACL_RT_STREAM_STATE_CREATE_POST,
    ACL_RT_STREAM_STATE_DESTROY_PRE, aclError, aclrtDeviceState, aclrtStream, aclrtStreamState,
};
use sa_recorder::{Args, Recorder, host, now_ns};
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum time that an exit waits for the devices' threads.
const EXIT_WAIT_NS: u64 = 150_000_000;
/// Maximum time that a launch waits for another thread to create the shim, and the time between two checks.
const MAKE_WAIT_NS: u64 = 1_000_000_000;
const MAKE_NAP: Duration = Duration::from_micros(50);

static SHIM: OnceLock<Shim> = OnceLock::new();
/// True once a thread is creating the shim or has created it.
static MAKING: AtomicBool = AtomicBool::new(false);

/// Returns the object of this process that times launches (the shim). The first call creates it. In a forked child of a process that had one, it times
/// nothing.
pub(crate) fn shim() -> &'static Shim {
    if let Some(shim) = SHIM.get() {
        return shim;
    }
    if is_forked() {
        return idle_shim();
    }
    if MAKING.swap(true, Ordering::AcqRel) {
        return awaited_shim();
    }
    let _ = Recorder::get().is_main(); // handlers that are registered later run earlier at the exit
    host::run_after_fork(after_fork);
    let config = Config::from_lookup(host::variable);
    let made = Shim::new(Timing::open(&config, at_exit), config.sample);
    let shim = SHIM.get_or_init(|| made);
    let Timing { runtime, mspti, .. } = &shim.timing;
    let watch = || runtime.watch(Some(device_changes), Some(stream_changes), Some(finalizes));
    if thread::unnoticed(runtime, watch) {
        stream_cache::rely_on_runtime();
    }
    host::run_at_exit(at_exit);
    mspti.start(runtime);
    shim
}

/// Waits for the shim that another thread is creating, for at most a second, and returns it. After that, returns one that times nothing.
fn awaited_shim() -> &'static Shim {
    static HANGS: AtomicBool = AtomicBool::new(false);
    let end_ns = now_ns() + MAKE_WAIT_NS;
    while SHIM.get().is_none() && !HANGS.load(Ordering::Relaxed) {
        if now_ns() > end_ns {
            HANGS.store(true, Ordering::Relaxed); // no thread waits a second time
        }
        host::sleep(MAKE_NAP);
    }
    SHIM.get().unwrap_or_else(idle_shim)
}

/// Returns a shim (the object that times launches) that times nothing. A thread gets it if creating the real one takes more than a second, for example because
/// a library constructor blocks. So does a child that was forked while its parent was creating one.
fn idle_shim() -> &'static Shim {
    static IDLE: OnceLock<Shim> = OnceLock::new();
    IDLE.get_or_init(|| Shim::new(Timing::default(), 1))
}

/// Returns the object that times launches (the shim), if it already exists and its runtime belongs to this process.
pub(crate) fn existing_shim() -> Option<&'static Shim> {
    SHIM.get().filter(|_| !is_forked())
}

/// Ends the timing of launches at the exit of the process. It is registered several times: the last registration must be after MSPTI's, so that this runs
/// before MSPTI's handler. The first call counts.
extern "C" fn at_exit() {
    static BEGAN: AtomicBool = AtomicBool::new(false);
    if let Some(shim) = existing_shim()
        && !BEGAN.swap(true, Ordering::AcqRel)
    {
        shim.devices().for_each(Device::end);
        let end_ns = now_ns() + EXIT_WAIT_NS;
        shim.devices().for_each(|device| device.await_end(end_ns));
        shim.timing.mspti.end(now_ns() + EXIT_WAIT_NS);
        // A device's thread that was too slow writes no more slices.
        shim.timing.tally.give_up();
        shim.timing.mspti.count_rest(&shim.timing.tally);
        shim.timing.tally.show();
    }
}

/// Runs the body of a function that the runtime calls. A panic must not unwind into the runtime.
fn guarded(act: impl FnOnce() + std::panic::UnwindSafe) {
    let _ = std::panic::catch_unwind(act); // the panic hook has already reported it
}

extern "C" fn device_changes(device: i32, state: aclrtDeviceState, _: *mut c_void) {
    if state == ACL_RT_DEVICE_STATE_RESET_PRE {
        guarded(|| before_reset(device));
    }
}

extern "C" fn stream_changes(stream: aclrtStream, state: aclrtStreamState, _: *mut c_void) {
    match state {
        ACL_RT_STREAM_STATE_CREATE_POST => guarded(|| stream_created(stream)),
        ACL_RT_STREAM_STATE_DESTROY_PRE => guarded(|| stream_destroyed(stream)),
        _ => {}
    }
}

extern "C" fn finalizes(_: *mut c_void) -> aclError {
    guarded(before_finalize);
    0
}

/// Forgets the graph updates of an earlier stream with the same handle. The runtime calls this after it has created a stream.
fn stream_created(stream: *mut c_void) {
    stream_cache::invalidate();
    if let Some(shim) = existing_shim() {
        shim.timing.gate.forget_updates(Stream(stream as usize));
    }
}

/// Drops the open launches of a stream, and its capture and graph updates. The runtime or an interposer calls this before the stream is destroyed.
pub fn stream_destroyed(stream: *mut c_void) {
    stream_cache::invalidate();
    if let Some(shim) = existing_shim() {
        let stream = Stream(stream as usize);
        shim.timing.gate.open(stream);
        shim.timing.gate.forget_updates(stream);
        let goes = |pending: &Pending| pending.launched.description.stream == stream;
        shim.devices().for_each(|one| one.drop_where(goes));
    }
}

/// Drops the open launches in the streams of a context. An interposer calls this before the context is destroyed with its streams.
pub fn before_context_destroyed(context: *mut c_void) {
    stream_cache::invalidate();
    if let Some(shim) = existing_shim() {
        let context = Context(context as usize);
        let goes = |pending: &Pending| pending.context == context;
        shim.devices().for_each(|one| one.drop_where(goes));
    }
}

/// Forgets the captures and graph updates in the streams of a context. An interposer calls this after the context was destroyed.
pub fn context_destroyed(context: *mut c_void) {
    if let Some(shim) = existing_shim() {
        let context = Context(context as usize);
        shim.timing.gate.forget_context(Some(context));
    }
}

/// Removes our events and streams from the device to which the program gives the number `user`. The runtime or an interposer calls this before the device is
/// reset.
pub fn before_reset(user: i32) {
    stream_cache::invalidate();
    if let Some(shim) = existing_shim()
        && let Some(device) = shim.devices().find(|one| one.pool.user == user)
    {
        let Timing { runtime, gate, .. } = &shim.timing;
        // A thread may reset a device other than its context's.
        if thread::unnoticed(runtime, || runtime.device().ok()) == Some(user) {
            gate.forget_context(own_context(shim));
        }
        device.close();
    }
}

/// Removes our events and streams from all devices. The runtime or an interposer calls this before the runtime is shut down.
pub fn before_finalize() {
    stream_cache::invalidate();
    if let Some(shim) = existing_shim() {
        shim.devices().for_each(Device::close);
        shim.timing.gate.forget_all();
    }
}

/// Returns the calling thread's context of the device runtime, if it has one.
pub(crate) fn own_context(shim: &Shim) -> Option<Context> {
    let runtime = &shim.timing.runtime;
    thread::unnoticed(runtime, || runtime.context().ok())
}

/// Pauses our timing, because another profiler (`name`) was started. While it is running, no events of ours are put into streams. An interposer calls this.
pub fn profiler_started(name: &str) {
    if gate::profiler_started()
        && let Some(shim) = existing_shim()
    {
        shim.timing.mspti.stop(&shim.timing.runtime);
        write_instant("device_timing_paused", &Args::new().with("by", name));
    }
}

/// Resumes our timing if no other profiler is running any more. An interposer calls this after the profiler `name` was stopped.
pub fn profiler_stopped(name: &str) {
    if gate::profiler_stopped()
        && let Some(shim) = existing_shim()
    {
        shim.timing.mspti.start(&shim.timing.runtime);
        write_instant("device_timing_resumed", &Args::new().with("by", name));
    }
}
