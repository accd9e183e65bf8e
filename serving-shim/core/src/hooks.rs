//! Functions with which an interposer reports the calls that it intercepts.

use crate::description::{Description, Kind, Name};
use crate::device::Device;
use crate::launch::Launch;
pub use crate::process::{
    before_context_destroyed, before_finalize, before_reset, context_destroyed, profiler_started,
    profiler_stopped, stream_destroyed,
};
use crate::process::{existing_shim, own_context, shim};
use crate::runtime::ascend::set_refused;
use crate::runtime::{Code, Graph, Stream, Task, thread};
use crate::shim::{Shim, is_forked};
use crate::tally::Fate;
use sa_recorder::{Level, Recorder};
use std::ffi::c_void;
use std::sync::atomic::Ordering;

/// Returns true if launches are recorded now. Costs one load.
#[inline]
pub fn active() -> bool {
    Recorder::get().includes(Level::Kernel)
}

/// An intercepted launch.
#[derive(Clone, Copy, Debug)]
pub struct InterceptedLaunch {
    /// The kind of the launch.
    pub kind: Kind,
    /// The stream, or null for the context's default stream.
    pub stream: *mut c_void,
    /// Number of blocks, or 0 for none.
    pub grid: u32,
    /// Number of bytes moved, or 0 for none.
    pub bytes: u64,
}

/// Begins to record an intercepted launch, before the call. Returns `None` if its outcome does not matter: recording is off, or sampling leaves out this
/// launch of a kernel, operator or copy. `name` is called only if the name is needed.
pub fn launch(call: &InterceptedLaunch, name: impl FnOnce() -> Name) -> Option<Launch> {
    if !active() {
        return None;
    }
    thread::interpose();
    let shim = shim();
    let stream = Stream(call.stream as usize);
    // Each kernel of a capture is recorded, because it is launched only once.
    let stands_for = if !call.kind.is_eager() || shim.timing.gate.is_closed() {
        Some(1)
    } else {
        shim.draw()
    };
    let Some(stands_for) = stands_for else {
        leave_out(shim, stream);
        return thread::may_repeat_record().then(Launch::off);
    };
    let description = Description {
        kind: call.kind,
        name: name(),
        stream,
        grid: call.grid,
        bytes: call.bytes,
    };
    Some(Launch::open(shim, description, stands_for))
}

/// Counts a launch that sampling leaves out or that updates a graph, and that is not recorded.
pub(crate) fn leave_out(shim: &Shim, stream: Stream) {
    // In the child of a fork, the lock may be locked forever, because the parent held it.
    let updates = !is_forked() && shim.timing.gate.is_updating(stream);
    shim.timing.tally.count(match updates {
        true => Fate::GraphUpdate,
        false => Fate::NotSampled,
    });
}

/// Returns the object that times launches. Creates it if launches are recorded, even before the first launch. Otherwise returns `None` if it does not exist.
fn recorded_shim() -> Option<&'static Shim> {
    let recorded = active().then(shim);
    recorded.filter(|_| !is_forked()).or_else(existing_shim)
}

/// Stops putting events into streams, because a stream is about to be captured into a graph. An interposer calls this before the capture.
pub fn capture_begin(stream: *mut c_void) {
    if let Some(shim) = recorded_shim() {
        shim.hooked.store(true, Ordering::Relaxed);
        thread::interpose();
        shim.timing.mspti.start(&shim.timing.runtime); // only kernels that MSPTI sees during the capture have records in replays
        let (gate, context) = (&shim.timing.gate, own_context(shim));
        gate.close(Stream(stream as usize), context, None);
        shim.devices().for_each(Device::quiesce);
    }
}

/// Allows events in streams again after the capture of a stream. `graph` is the captured graph, or null if the capture failed. An interposer calls this.
pub fn capture_end(stream: *mut c_void, graph: *mut c_void) {
    if let Some(shim) = existing_shim()
        && let Some(known_as) = shim.timing.gate.open(Stream(stream as usize))
    {
        match graph as usize {
            0 => shim.graphs.forget(known_as),
            graph => shim.graphs.rename(known_as, Graph(graph)),
        }
    }
}

/// Records that launches into a stream are about to update a captured graph. An interposer calls this before the update.
pub fn update_begin(stream: *mut c_void) {
    if let Some(shim) = recorded_shim() {
        let (gate, context) = (&shim.timing.gate, own_context(shim));
        gate.begin_update(Stream(stream as usize), context);
    }
}

/// Records that the update of a captured graph through this stream has ended, or did not begin. An interposer calls this.
pub fn update_end(stream: *mut c_void) {
    if let Some(shim) = existing_shim() {
        shim.timing.gate.end_update(Stream(stream as usize));
    }
}

/// Forgets the kernels of a captured graph. An interposer calls this before the graph is destroyed.
pub fn graph_destroyed(graph: *mut c_void) {
    if let Some(shim) = existing_shim() {
        shim.graphs.forget(Graph(graph as usize));
    }
}

/// Makes a call of the runtime for the interposer itself and returns its code. Leaves no error that the program could find.
pub fn own_call(call: impl FnOnce() -> Code) -> Code {
    let Some(runtime) = shim().own_runtime() else {
        return call();
    };
    thread::unnoticed(runtime, || {
        let code = call();
        if code != 0 {
            set_refused();
        }
        code
    })
}

/// Returns true if the program may have to see other answers than the runtime's: those of [`last_error`] and the functions after it. Costs one load.
#[inline]
pub fn answers_differ() -> bool {
    thread::is_interposed()
}

/// Returns the thread's last error as it would be without our own calls. `real` is what the runtime returned. `taken` means that the runtime has cleared it.
pub fn last_error(real: Code, taken: bool) -> Code {
    thread::shown_error(real, taken)
}

/// Returns the thread's last task as it would be without our own events. `real` is what the runtime returned.
pub fn last_task(real: Task) -> Task {
    thread::shown_task(real)
}

/// Returns the id of the task that [`last_task`] would return. `real` is the id from a function of the runtime that only returns the id.
pub fn last_task_id(real: u32) -> u32 {
    let runtime = existing_shim().and_then(Shim::own_runtime);
    let task = runtime.and_then(|runtime| thread::unnoticed(runtime, || runtime.last_task()));
    match task {
        Some(task) if task.id == real => last_task(task).id,
        _ => real,
    }
}
