//! The process: starting, naming, flushing, ending.

use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering};

use sa_recorder::Recorder;

use crate::call::guarded;
use crate::level::{self, Level};
use crate::text;

/// Starts recording if the environment asks for it, and exports the run to child processes: `SA_PROFILE_RUN`, `SA_PROFILE_MAIN_PID` and the run
/// directory, absolute. Call it first in `main`, before there are threads: it calls `setenv`. A library that is loaded into somebody else's process
/// leaves it out: recording then starts with the first event, and children find the run by its directory. A second call does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_init() {
    static CALLED: AtomicBool = AtomicBool::new(false);
    if !CALLED.swap(true, Ordering::Relaxed) {
        guarded((), || {
            Recorder::init();
        });
    }
}

/// Whether anything is recorded: false without the variables in the environment, while recording is switched off, after `sa_profile_finish`, and if it
/// could not be set up (which is said once on stderr).
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_is_enabled() -> bool {
    guarded(false, || Recorder::get().is_enabled())
}

/// Whether events of this level are recorded: worth asking before costly args are computed.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_includes(level: Level) -> bool {
    level::wanted(level).is_some_and(|level| guarded(false, || Recorder::get().includes(level)))
}

/// Names the process in the trace; a later name replaces it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_process_set_name(name: *const c_char) {
    guarded((), || {
        // SAFETY: the caller's.
        Recorder::get().set_process_name(&unsafe { text::name(name) });
    });
}

/// Names the calling thread in the trace; a later name replaces it. Without it a thread has the name that the system knows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_thread_set_name(name: *const c_char) {
    guarded((), || {
        // SAFETY: the caller's.
        Recorder::get().set_thread_name(&unsafe { text::name(name) });
    });
}

/// Brings everything recorded so far into the fragment. Never needed for safety: a killed process loses nothing that was recorded. Waits a second at
/// most for a writer that is under way.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_flush() {
    guarded((), || Recorder::get().flush());
}

/// Ends recording in this process, for good; what is open shows as unfinished. It also runs at exit, so that nobody must call it. A second call does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_finish() {
    guarded((), || Recorder::get().finish());
}

/// Events that this process could not keep so far; the trace says why.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_dropped() -> u64 {
    guarded(0, || Recorder::get().dropped())
}

/// Now, in ns of `CLOCK_MONOTONIC`: the clock of all times of this header.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_now_ns() -> u64 {
    guarded(0, sa_recorder::now_ns)
}
