//! What an interposer reports of the calls it sees.

use crate::counts::count;
use crate::description::{Description, Kind, Name};
use crate::launch::Launch;
use crate::runtime::{Code, Context, Graph, Stream, Task, stream_cache, thread};
use crate::shim::{self, Shim};
use sa_recorder::{Level, Recorder};
use std::ffi::c_void;
use std::sync::atomic::Ordering;

/// Whether launches are recorded now: one load.
#[inline]
pub fn active() -> bool {
    Recorder::get().includes(Level::Kernel)
}

/// What is known of an intercepted launch.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// What is launched.
    pub kind: Kind,
    /// The stream; null for the context's default one.
    pub stream: *mut c_void,
    /// Blocks; 0 for none.
    pub grid: u32,
    /// Bytes moved; 0 for none.
    pub bytes: u64,
}

/// A launch is about to be made. `None` if its outcome does not matter: recording is off, or it is one of the eager launches that sampling leaves out.
/// `name` is asked for only where it is needed.
pub fn launch(seen: &Seen, name: impl FnOnce() -> Name) -> Option<Launch> {
    if !active() {
        return None;
    }
    thread::interpose();
    let shim = Shim::get();
    let describe = |name| Description {
        kind: seen.kind,
        name,
        stream: Stream(seen.stream as usize),
        grid: seen.grid,
        bytes: seen.bytes,
    };
    // Each kernel of a capture is noted, for it is the only time that it is launched.
    let sampled = if !seen.kind.is_eager() || shim.gate.is_closed() {
        Some(1)
    } else {
        shim.samples()
    };
    match sampled {
        Some(stands_for) => Some(Launch::open(shim, describe(name()), stands_for)),
        None => {
            leave_out(shim, Stream(seen.stream as usize));
            thread::may_repeat_record().then(Launch::off)
        }
    }
}

/// Counts a launch that is not recorded.
pub(crate) fn leave_out(shim: &Shim, stream: Stream) {
    // In the child of a fork the lock may be one that its parent held.
    let updates = !Shim::is_forked() && shim.updates.has(stream);
    count(match updates {
        true => &shim.counts.graph_update,
        false => &shim.counts.not_sampled,
    });
}

/// A stream is about to be captured.
pub fn capture_begin(stream: *mut c_void) {
    // Also one that begins before the first launch is recorded.
    let recorded = active().then(Shim::get);
    if let Some(shim) = recorded
        .filter(|_| !Shim::is_forked())
        .or_else(Shim::existing)
    {
        shim.hooked.store(true, Ordering::Relaxed);
        thread::interpose();
        shim.use_mspti(); // of its replays there are records only of what MSPTI sees now
        let context = own_context(shim);
        shim.gate.close_before(Stream(stream as usize), context);
        shim.devices().for_each(crate::device::Device::quiesce);
    }
}

/// The capture of a stream has ended and made a graph; a null one if it failed.
pub fn capture_end(stream: *mut c_void, graph: *mut c_void) {
    if let Some(shim) = Shim::existing()
        && let Some(known_as) = shim.gate.open(Stream(stream as usize))
    {
        match graph as usize {
            0 => shim.graphs.forget(known_as),
            graph => shim.graphs.rename(known_as, Graph(graph)),
        }
    }
}

/// A graph is about to be updated by what is launched into a stream.
pub fn update_begin(stream: *mut c_void) {
    let recorded = active().then(Shim::get);
    if let Some(shim) = recorded
        .filter(|_| !Shim::is_forked())
        .or_else(Shim::existing)
    {
        let context = own_context(shim);
        shim.updates.begin(Stream(stream as usize), context);
    }
}

/// The update has ended, or has not begun.
pub fn update_end(stream: *mut c_void) {
    if let Some(shim) = Shim::existing() {
        shim.updates.end(Stream(stream as usize));
    }
}

/// A graph is about to be destroyed.
pub fn graph_destroyed(graph: *mut c_void) {
    if let Some(shim) = Shim::existing() {
        shim.graphs.forget(Graph(graph as usize));
    }
}

/// A stream was made, whose handle may be that of one before.
pub fn stream_created(stream: *mut c_void) {
    stream_cache::change();
    if let Some(shim) = Shim::existing() {
        shim.updates.forget(Stream(stream as usize));
    }
}

/// A context is about to be destroyed, with its streams: nothing more is asked of what is pending there.
pub fn before_context_destroyed(context: *mut c_void) {
    stream_cache::change();
    if let Some(shim) = Shim::existing() {
        let context = Context(context as usize);
        shim.devices()
            .for_each(|device| device.drop_context(shim, context));
    }
}

/// A context was destroyed.
pub fn context_destroyed(context: *mut c_void) {
    if let Some(shim) = Shim::existing() {
        let context = Context(context as usize);
        shim.gate.forget(Some(context));
        shim.updates.forget_context(Some(context));
    }
}

/// A stream is about to be destroyed.
pub fn stream_destroyed(stream: *mut c_void) {
    stream_cache::change();
    if let Some(shim) = Shim::existing() {
        let stream = Stream(stream as usize);
        shim.gate.open(stream);
        shim.updates.forget(stream);
        shim.devices()
            .for_each(|device| device.drop_stream(shim, stream));
    }
}

/// A device is about to be reset.
pub fn before_reset(user: i32) {
    stream_cache::change();
    if let Some(shim) = Shim::existing()
        && let Some(device) = shim.devices().find(|one| one.is(user))
    {
        // A thread may reset another device than that of its context.
        if device_of_thread(shim) == Some(user) {
            let context = own_context(shim);
            shim.gate.forget(context);
            shim.updates.forget_context(context);
        }
        device.close(shim);
    }
}

/// The runtime is about to be taken down.
pub fn before_finalize() {
    stream_cache::change();
    if let Some(shim) = Shim::existing() {
        shim.devices().for_each(|device| device.close(shim));
        shim.gate.forget_all();
        shim.updates.forget_all();
    }
}

/// The calling thread's context, if it has one.
fn own_context(shim: &Shim) -> Option<Context> {
    thread::unnoticed(shim.runtime(), || shim.runtime().context().ok())
}

fn device_of_thread(shim: &Shim) -> Option<i32> {
    thread::unnoticed(shim.runtime(), || shim.runtime().device().ok())
}

/// Another profiler was started.
pub fn profiler_started(name: &str) {
    shim::pause(name);
}

/// It was stopped.
pub fn profiler_stopped(name: &str) {
    shim::resume(name);
}

/// The name that the runtime has for a kernel's function handle.
pub fn function_name(function: *mut c_void) -> Option<String> {
    let runtime = Shim::get().timing_runtime().ok()?;
    thread::unnoticed(runtime, || runtime.function_name(function as usize))
}

/// Makes a call of the runtime for the interposer itself; no error of it is left for the program to find.
pub fn own_call(call: impl FnOnce() -> Code) -> Code {
    let Some(runtime) = Shim::get().own_runtime() else {
        return call();
    };
    thread::unnoticed(runtime, || {
        let code = call();
        if code != 0 {
            thread::refused();
        }
        code
    })
}

/// Whether [`last_error`] and the others below may answer anything but what the runtime says: one load.
#[inline]
pub fn answers_differ() -> bool {
    thread::is_interposed()
}

/// What the program is to be told where the runtime says that its thread's last error is `real`. With `taken` the runtime has forgotten it.
pub fn last_error(real: Code, taken: bool) -> Code {
    thread::shown_error(real, taken)
}

/// What the program is to be told where the runtime says that its thread's last task is `real`.
pub fn last_task(real: Task) -> Task {
    thread::shown_task(real)
}

/// The same where only the id was asked for.
pub fn last_task_id(real: u32) -> u32 {
    let runtime = Shim::existing().and_then(Shim::own_runtime);
    let task = runtime.and_then(|runtime| thread::unnoticed(runtime, || runtime.last_task()));
    match task {
        Some(task) if task.id == real => last_task(task).id,
        _ => real,
    }
}
