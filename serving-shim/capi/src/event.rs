//! Events without a handle: instants, counters, flows, and spans that are recorded after they have ended.

use std::ffi::c_char;

use sa_recorder::{Args, FLOW_CATEGORY, FlowId, FlowPhase, Recorder, flow_now, ready_instant};

use crate::arg::{self, Arg};
use crate::cache;
use crate::call::{guarded, guarded_memory};
use crate::level::{self, Level};
use crate::text;

/// The position of an event in its flow. Events with an unknown phase are not recorded.
pub type Phase = u32;

/// The first event of a flow.
pub const SA_PROFILE_FLOW_START: Phase = 0;
/// An event between the first and the last.
pub const SA_PROFILE_FLOW_STEP: Phase = 1;
/// The last event of a flow.
pub const SA_PROFILE_FLOW_END: Phase = 2;

/// Value of `start_ns` of `sa_profile_duration` for a span that ends now.
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
    let Some(level) = level::enabled(level) else {
        return;
    };
    guarded_memory((), || {
        // SAFETY: guaranteed by the caller.
        let args = unsafe { arg::args(args, count) };
        // SAFETY: guaranteed by the caller.
        let site = unsafe { cache::site(level, category, name) };
        if site.and_then(|site| ready_instant(site, &args)).is_none() {
            // SAFETY: guaranteed by the caller.
            unsafe { instant_by_name(level, category, name, &args) };
        }
    });
}

/// Records an instant whose name is not cached: the first one of a thread, the first one with a name, or one whose name cannot be cached.
///
/// # Safety
///
/// Both pointers are null or C strings.
#[cold]
unsafe fn instant_by_name(
    level: sa_recorder::Level,
    category: *const c_char,
    name: *const c_char,
    args: &Args,
) {
    guarded((), || {
        let pointers = (category, name);
        // SAFETY: guaranteed by the caller.
        let category = unsafe { text::name(category) };
        // SAFETY: guaranteed by the caller.
        let name = unsafe { text::name(name) };
        cache::insert_site(level, pointers, [&category, &name]);
        Recorder::get().instant(level, &category, &name, args);
    });
}

/// Records the current values of a counter, with one series for each arg.
///
/// A boolean counts as 0 or 1. A value that is not a finite number is dropped and counted as a loss.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_counter(
    level: Level,
    name: *const c_char,
    series: *const Arg,
    count: usize,
) {
    let Some(level) = level::enabled(level) else {
        return;
    };
    guarded((), || {
        // SAFETY: guaranteed by the caller.
        let name = unsafe { text::name(name) };
        // SAFETY: guaranteed by the caller.
        let series = unsafe { arg::args(series, count) };
        Recorder::get().counter(level, &name, &series);
    });
}

/// Records one event of a flow whose id is unique within this process. The event belongs to the span that encloses it on the calling thread.
///
/// All events of a flow have the same category, name and id. A null `category` means `"flow"`, the default in every language, so that the events of
/// different programs form one flow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_flow(
    level: Level,
    phase: Phase,
    category: *const c_char,
    name: *const c_char,
    id: u64,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { flow(level, phase, category, name, FlowId::Process(id)) };
}

/// Records one event of a flow like `sa_profile_flow`, but the same id means the same flow in every process of the run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_flow_global(
    level: Level,
    phase: Phase,
    category: *const c_char,
    name: *const c_char,
    id: u64,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { flow(level, phase, category, name, FlowId::Global(id)) };
}

/// Records one event of a flow whose id is a text, such as the id of a request. The same text means the same flow in every process of the run, in Rust and
/// Python too.
///
/// Nothing is recorded if `id` is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_flow_text(
    level: Level,
    phase: Phase,
    category: *const c_char,
    name: *const c_char,
    id: *const c_char,
) {
    if level::enabled(level).is_none() {
        return;
    }
    let flow_id = || {
        // SAFETY: guaranteed by the caller.
        let id = unsafe { text::optional(id) };
        id.map(|id| FlowId::from_text(&id))
    };
    if let Some(id) = guarded(None, flow_id) {
        // SAFETY: guaranteed by the caller.
        unsafe { flow(level, phase, category, name, id) };
    }
}

/// Records an event of a flow arrow on the calling thread, if its level is recorded.
///
/// # Safety
///
/// Each string is null or a C string.
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
    let Some(level) = level::enabled(level) else {
        return;
    };
    guarded((), || {
        // SAFETY: guaranteed by the caller.
        let category = unsafe { text::optional(category) };
        // SAFETY: guaranteed by the caller.
        let name = unsafe { text::name(name) };
        let category = category.as_deref().unwrap_or(FLOW_CATEGORY);
        flow_now(level, phase, category, &name, id);
    });
}

/// Records a span of the calling thread that has already ended. It lasted `duration_ns` and began at `start_ns`, on the clock of `sa_profile_now_ns`. With
/// `SA_PROFILE_ENDS_NOW` as `start_ns` it ends now. A negative duration counts as 0.
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
    let Some(level) = level::enabled(level) else {
        return;
    };
    guarded((), || {
        // SAFETY: guaranteed by the caller.
        let category = unsafe { text::name(category) };
        // SAFETY: guaranteed by the caller.
        let name = unsafe { text::name(name) };
        // SAFETY: guaranteed by the caller.
        let args = unsafe { arg::args(args, count) };
        let start_ns = (start_ns != SA_PROFILE_ENDS_NOW).then_some(start_ns);
        sa_recorder::duration(level, &category, &name, duration_ns, start_ns, &args);
    });
}
