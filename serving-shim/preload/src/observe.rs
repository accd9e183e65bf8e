//! The interface to `serving-shim`, which records and times launches and waits. No other module of this library calls it.

use std::ffi::c_void;

use ascend_sys::types::{ACL_RT_THREAD_LEVEL, aclrtLastErrLevel};
use sa_recorder::{Level, Recorder, SpanGuard};
use serving_shim::runtime::Graph;

pub(crate) use serving_shim::hooks::{
    InterceptedLaunch, active, answers_differ, before_context_destroyed, before_finalize,
    before_reset, capture_begin, capture_end, context_destroyed, graph_destroyed, own_call,
    profiler_started, profiler_stopped, stream_destroyed, update_begin, update_end,
};
pub(crate) use serving_shim::{Kind, Launch};

use crate::kernel_name::KernelName;
use crate::names::Name;

/// Returns true if launches may be recorded. Costs one load, and is true until the recorder has read its configuration.
#[inline(always)]
pub(crate) fn may_be_active() -> bool {
    sa_recorder::__wants(Level::Kernel)
}

/// Returns true if this process records, either now or once recording is switched on.
pub(crate) fn is_configured() -> bool {
    Recorder::get().run().is_some()
}

/// Describes an intercepted launch by its kind and stream, without grid and bytes.
pub(crate) const fn intercepted(kind: Kind, stream: *mut c_void) -> InterceptedLaunch {
    InterceptedLaunch {
        kind,
        stream,
        grid: 0,
        bytes: 0,
    }
}

/// Returns the launch kind for the replay of a captured graph.
pub(crate) fn replay(graph: *mut c_void) -> Kind {
    Kind::Graph(Graph(graph.addr()))
}

/// Begins to record a launch by the vendor's function `api`, whose name is used for work without a name. `name` is called only if the launch is recorded.
/// Returns `None` if it is not.
pub(crate) fn launch<'a>(
    api: &'static str,
    intercepted: &InterceptedLaunch,
    name: impl FnOnce() -> Name<'a>,
) -> Option<Launch> {
    serving_shim::hooks::launch(intercepted, || match name() {
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

/// Returns the runtime's last error as the host must see it. `real` is what the real function has returned, and `is_cleared` is true if that call cleared the
/// error.
pub(crate) fn last_error(real: i32, level: aclrtLastErrLevel, is_cleared: bool) -> i32 {
    match level {
        ACL_RT_THREAD_LEVEL => serving_shim::hooks::last_error(real, is_cleared),
        _ => real, // the call was refused
    }
}

/// A call in which the host waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) category: &'static str,
    pub(crate) stream: Option<*mut c_void>,
    pub(crate) bytes: Option<u64>,
    /// Reason why the call has no device time although it changes what the device does later.
    pub(crate) not_timed: Option<&'static str>,
}

impl Wait {
    /// Creates the description of a call in which the host waits, with only a category.
    pub(crate) const fn new(category: &'static str) -> Wait {
        Wait {
            category,
            stream: None,
            bytes: None,
            not_timed: None,
        }
    }
}

/// Begins the span of a call in which the host waits. `api` is the name of the vendor's function.
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

/// Ends the span of a call in which the host waited. If the call failed, adds its result as the error.
pub(crate) fn end_wait(mut span: SpanGuard, result: i32) {
    if result != 0 {
        span.arg("error", result);
    }
}
