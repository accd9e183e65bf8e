//! The seam to the timing (`serving-shim`): what was launched and waited for goes through here, and nothing else of this library knows how it is recorded.

use std::ffi::c_void;

use ascend_sys::types::{ACL_RT_THREAD_LEVEL, aclrtLastErrLevel};
use sa_recorder::{Level, Recorder, SpanGuard};
use serving_shim::runtime::Graph;

pub(crate) use serving_shim::hooks::{
    Seen, active, answers_differ, before_context_destroyed, before_finalize, before_reset,
    capture_begin, capture_end, context_destroyed, graph_destroyed, own_call, profiler_started,
    profiler_stopped, stream_destroyed, update_begin, update_end,
};
pub(crate) use serving_shim::{Kind, Launch};

use crate::kernel_name::KernelName;
use crate::names::Name;

/// Whether launches may be recorded: one load, and true before anybody has looked.
#[inline(always)]
pub(crate) fn may_be_active() -> bool {
    sa_recorder::__wants(Level::Kernel)
}

/// Whether anything is recorded in this process, now or when it is switched on.
pub(crate) fn is_configured() -> bool {
    Recorder::get().run().is_some()
}

/// Work of which no more is known.
pub(crate) const fn seen(kind: Kind, stream: *mut c_void) -> Seen {
    Seen {
        kind,
        stream,
        grid: 0,
        bytes: 0,
    }
}

/// The replay of a captured graph.
pub(crate) fn replay(graph: *mut c_void) -> Kind {
    Kind::Graph(Graph(graph.addr()))
}

/// Begins a launch by the function `api`, which names what has no name of its own. `name` is asked for only if the launch is recorded.
pub(crate) fn launch<'a>(
    api: &'static str,
    seen: &Seen,
    name: impl FnOnce() -> Name<'a>,
) -> Option<Launch> {
    serving_shim::hooks::launch(seen, || match name() {
        Name::Kernel(name) => kernel(name),
        Name::Asked(name) => kernel(&name),
        Name::Text(text) => text.to_string_lossy().into_owned().into(),
        Name::Unknown => api.into(),
    })
}

fn kernel(name: &KernelName) -> serving_shim::Name {
    serving_shim::Name {
        shown: name.shown().to_owned().into(),
        raw: (name.shown() != name.raw).then(|| name.raw.clone()),
    }
}

/// The last error that the host is to see where the real function has given `real`; with `taken` that has forgotten it.
pub(crate) fn last_error(real: i32, level: aclrtLastErrLevel, taken: bool) -> i32 {
    match level {
        ACL_RT_THREAD_LEVEL => serving_shim::hooks::last_error(real, taken),
        _ => real, // it was refused
    }
}

/// What the host waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) category: &'static str,
    pub(crate) stream: Option<*mut c_void>,
    pub(crate) bytes: Option<u64>,
    /// Why the device has no time for it, where it changes what the device does later.
    pub(crate) not_timed: Option<&'static str>,
}

impl Wait {
    /// A wait of which no more is known.
    pub(crate) const fn new(category: &'static str) -> Wait {
        Wait {
            category,
            stream: None,
            bytes: None,
            not_timed: None,
        }
    }
}

/// Begins a wait in the function `api`.
pub(crate) fn wait(api: &'static str, wait: &Wait) -> SpanGuard {
    let mut span = Recorder::get().span(Level::Kernel, wait.category, api);
    if let Some(stream) = wait.stream {
        span.arg("handle", format!("{stream:?}"));
    }
    if let Some(bytes) = wait.bytes {
        span.arg("bytes", bytes);
    }
    if let Some(why) = wait.not_timed {
        span.arg("not_timed", why);
    }
    span
}

/// Ends a wait; a failure is told.
pub(crate) fn waited(mut span: SpanGuard, result: i32) {
    if result != 0 {
        span.arg("error", result);
    }
}
