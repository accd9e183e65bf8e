//! Events without an extent on the stack: instants, counters, flows, durations told afterwards.

use std::ffi::c_char;

use sa_recorder::{Args, FLOW_CATEGORY, FlowId, FlowPhase, Recorder, flow_now, ready_instant};

use crate::arg::{self, Arg};
use crate::call::{guarded, guarded_memory};
use crate::known;
use crate::level::{self, Level};
use crate::text;

/// Where in a flow an event stands. Events of an unknown phase are not recorded.
pub type Phase = u32;

/// The first event of a flow.
pub const SA_PROFILE_FLOW_START: Phase = 0;
/// An event on the way.
pub const SA_PROFILE_FLOW_STEP: Phase = 1;
/// The last event of a flow.
pub const SA_PROFILE_FLOW_END: Phase = 2;

/// As `start_ns` of `sa_profile_duration`: so that it ends now.
pub const SA_PROFILE_ENDS_NOW: u64 = u64::MAX;

/// Records an instant on the calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_instant(
    level: Level,
    category: *const c_char,
    name: *const c_char,
    args: *const Arg,
    count: usize,
) {
    let Some(level) = level::wanted(level) else {
        return;
    };
    guarded_memory((), || {
        // SAFETY: the caller's.
        let args = unsafe { arg::args(args, count) };
        // SAFETY: the caller's.
        let site = unsafe { known::site(level, category, name) };
        if site.and_then(|site| ready_instant(site, &args)).is_none() {
            // SAFETY: the caller's.
            unsafe { instant_by_name(level, category, name, &args) };
        }
    });
}

/// Records the first instant of a thread or of a name, or one whose name cannot be kept.
///
/// # Safety
///
/// Both are null or C strings.
#[cold]
unsafe fn instant_by_name(
    level: sa_recorder::Level,
    category: *const c_char,
    name: *const c_char,
    args: &Args,
) {
    guarded((), || {
        let pointers = (category, name);
        // SAFETY: the caller's.
        let category = unsafe { text::name(category) };
        // SAFETY: the caller's.
        let name = unsafe { text::name(name) };
        known::keep_site(level, pointers, [&category, &name]);
        Recorder::get().instant(level, &category, &name, args);
    });
}

/// Records the values of a counter at this moment: one series for each of the args.
///
/// A boolean counts as 0 or 1. A value that is not a finite number is left out and counted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_counter(
    level: Level,
    name: *const c_char,
    series: *const Arg,
    count: usize,
) {
    let Some(level) = level::wanted(level) else {
        return;
    };
    guarded((), || {
        // SAFETY: the caller's.
        let name = unsafe { text::name(name) };
        // SAFETY: the caller's.
        let series = unsafe { arg::args(series, count) };
        Recorder::get().counter(level, &name, &series);
    });
}

/// Records one event of a flow whose id is unique within this process. It binds to the span that encloses it on the calling thread.
///
/// The events of a flow have the same category, name and id. A null `category` is `"flow"`, the default in every language, so that events of different
/// programs meet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_flow(
    level: Level,
    phase: Phase,
    category: *const c_char,
    name: *const c_char,
    id: u64,
) {
    // SAFETY: the caller's.
    unsafe { flow(level, phase, category, name, FlowId::Process(id)) };
}

/// Records one event of a flow as `sa_profile_flow` does; the same id is the same flow in every process of the run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_flow_global(
    level: Level,
    phase: Phase,
    category: *const c_char,
    name: *const c_char,
    id: u64,
) {
    // SAFETY: the caller's.
    unsafe { flow(level, phase, category, name, FlowId::Global(id)) };
}

/// Records one event of the flow of the text `id`, such as the id of a request. It is the same flow in every process of the run, and the flow
/// of the same text in Rust and Python.
///
/// An event without an id (null) is not recorded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_flow_text(
    level: Level,
    phase: Phase,
    category: *const c_char,
    name: *const c_char,
    id: *const c_char,
) {
    if level::wanted(level).is_none() {
        return;
    }
    let flow_id = || {
        // SAFETY: the caller's.
        let id = unsafe { text::optional(id) };
        id.map(|id| FlowId::of(&id))
    };
    if let Some(id) = guarded(None, flow_id) {
        // SAFETY: the caller's.
        unsafe { flow(level, phase, category, name, id) };
    }
}

/// Records one event of a flow.
///
/// # Safety
///
/// The strings are null or C strings.
unsafe fn flow(
    level: Level,
    phase: Phase,
    category: *const c_char,
    name: *const c_char,
    id: FlowId,
) {
    let phase = match phase {
        SA_PROFILE_FLOW_START => FlowPhase::Start,
        SA_PROFILE_FLOW_STEP => FlowPhase::Step,
        SA_PROFILE_FLOW_END => FlowPhase::End,
        _ => return,
    };
    let Some(level) = level::wanted(level) else {
        return;
    };
    guarded((), || {
        // SAFETY: the caller's.
        let category = unsafe { text::optional(category) };
        // SAFETY: the caller's.
        let name = unsafe { text::name(name) };
        let category = category.as_deref().unwrap_or(FLOW_CATEGORY);
        flow_now(level, phase, category, &name, id);
    });
}

/// Records a span that has ended already, on the calling thread: `duration_ns` long, begun at `start_ns` (as `sa_profile_now_ns` counts) or, with
/// `SA_PROFILE_ENDS_NOW`, so that it ends now. A negative duration counts as 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_duration(
    level: Level,
    category: *const c_char,
    name: *const c_char,
    start_ns: u64,
    duration_ns: i64,
    args: *const Arg,
    count: usize,
) {
    let Some(level) = level::wanted(level) else {
        return;
    };
    guarded((), || {
        // SAFETY: the caller's.
        let category = unsafe { text::name(category) };
        // SAFETY: the caller's.
        let name = unsafe { text::name(name) };
        // SAFETY: the caller's.
        let args = unsafe { arg::args(args, count) };
        let start_ns = (start_ns != SA_PROFILE_ENDS_NOW).then_some(start_ns);
        sa_recorder::duration(level, &category, &name, duration_ns, start_ns, &args);
    });
}
