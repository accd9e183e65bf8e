//! The process: starting, naming, flushing and ending its recording.

use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering};

use sa_recorder::Recorder;

use crate::call::guarded;
use crate::level::{self, Level};
use crate::text;

/// Starts recording if the environment asks for it. Exports the run to child processes in `SA_PROFILE_RUN`, `SA_PROFILE_MAIN_PID` and the absolute path of the run
/// directory. Call this first in `main`, before there are threads, because it calls `setenv`. A library that is loaded into another program should not call it:
/// recording then starts with the first event, and child processes find the run by its directory. A second call does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_init() {
    static CALLED: AtomicBool = AtomicBool::new(false);
    if !CALLED.swap(true, Ordering::Relaxed) {
        guarded((), || {
            Recorder::init();
        });
    }
}

/// Returns true if events are recorded. Returns false without the environment variables, while recording is switched off, after `sa_profile_finish`, and if
/// recording could not be set up, which is reported once on stderr.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_is_enabled() -> bool {
    guarded(false, || Recorder::get().is_enabled())
}

/// Returns true if events of this level are recorded. Check this before computing args that are expensive.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_includes(level: Level) -> bool {
    level::enabled(level).is_some_and(|level| guarded(false, || Recorder::get().includes(level)))
}

/// Sets the name of the process in the trace. A later call replaces it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_process_set_name(name: *const c_char) {
    guarded((), || {
        // SAFETY: guaranteed by the caller.
        Recorder::get().set_process_name(&unsafe { text::name(name) });
    });
}

/// Sets the name of the calling thread in the trace. A later call replaces it. The default is the name that the operating system has for the thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_thread_set_name(name: *const c_char) {
    guarded((), || {
        // SAFETY: guaranteed by the caller.
        Recorder::get().set_thread_name(&unsafe { text::name(name) });
    });
}

/// Writes everything recorded so far to the fragment. This is never needed for safety: a killed process loses nothing that it recorded. Waits at most one second
/// for a write that is in progress.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_flush() {
    guarded((), || Recorder::get().flush());
}

/// Ends recording in this process permanently. Open spans are shown as unfinished. This also runs at exit, so calling it is optional. A second call does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_finish() {
    guarded((), || Recorder::get().finish());
}

/// Returns the number of events that this process has dropped so far. The trace contains the causes.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_dropped() -> u64 {
    guarded(0, || Recorder::get().dropped())
}

/// Returns the current time of `CLOCK_MONOTONIC` in ns. All times in this header are on this clock.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_now_ns() -> u64 {
    guarded(0, sa_recorder::now_ns)
}
