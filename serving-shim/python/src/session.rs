//! Recordings that Python starts and stops: the state of the current one, and the variables for child processes.

mod plain;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use pyo3::prelude::*;
use sa_recorder::{Config, Level, Levels, Recorder, host};

use crate::interpreter::sampling;
use crate::{names, thread_setup};

/// Number of the current session. It increases when a recording starts and when one ends. A fork does not change it, because the child continues its parent's recording.
static SESSION: AtomicU64 = AtomicU64::new(1);
/// True once Python has started a recording, here or in the process that forked this one.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
/// True once the last recording has ended.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// True if the environment asked for recording when the package was imported.
static WAS_REQUESTED: AtomicBool = AtomicBool::new(false);
/// Result of the check whether anything asks for recording.
static REQUEST_STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const UNREQUESTED: u8 = 1;
const REQUESTED: u8 = 2;

/// Variables that turn recording on for the drop-in if they are set.
const REQUEST_VARIABLES: [&str; 3] = ["SA_PROFILE_DIR", "SA_PROFILE_OUTPUT", "SA_PROFILE_LEVEL"];

/// Returns true if nothing asks for recording: neither an environment variable nor an earlier call. Nothing will then be recorded before such a call.
#[inline]
pub(crate) fn is_unrequested() -> bool {
    match REQUEST_STATE.load(Ordering::Relaxed) {
        UNKNOWN => check_variables(),
        state => state == UNREQUESTED,
    }
}

/// Checks whether environment variables ask for recording, and stores the answer. Returns true if nothing asks for it. The answer is final only after the
/// recorder has checked them too, at the first event. Until then a program may still set variables.
#[cold]
fn check_variables() -> bool {
    if sa_recorder::__wants(Level::E2e) {
        return false;
    }
    let is_requested = is_under_way()
        || REQUEST_VARIABLES
            .iter()
            .any(|name| host::variable(name).is_some());
    let state = if is_requested { REQUESTED } else { UNREQUESTED };
    REQUEST_STATE.store(state, Ordering::Relaxed);
    !is_requested
}

/// Ends the current recording and starts the one that `variables` ask for, in place of the environment variables. Returns the number of the new session, and
/// an error message if it failed.
#[pyfunction]
#[pyo3(signature = (variables, name, /))]
pub(crate) fn start_recording(
    py: Python<'_>,
    variables: HashMap<String, OsString>,
    name: &Bound<'_, PyAny>,
) -> PyResult<(u64, Option<String>)> {
    let name = names::text("name", name)?;
    thread_setup::mark_named();
    REQUEST_STATE.store(REQUESTED, Ordering::Relaxed);
    close(py); // ends the previous recording
    let started =
        py.detach(|| Recorder::start_named(&name, |name| variables.get(name).cloned()).map(drop));
    let error = started.err().map(|error| error.to_string());
    if error.is_none() {
        HAS_BEGUN.store(true, Ordering::Relaxed);
        HAS_ENDED.store(false, Ordering::Relaxed);
    }
    let number = SESSION.fetch_add(1, Ordering::Relaxed) + 1;
    thread_setup::prepare_again();
    sampling::restart_sampling();
    Ok((number, error))
}

/// Ends recording in this process for good. The fragment then contains everything that was recorded.
///
/// An example::
///
///     sa_profile.finish()
///     os._exit(0)  # runs no exit handlers, which would have finished the recording
#[pyfunction]
pub(crate) fn finish(py: Python<'_>) {
    HAS_ENDED.store(true, Ordering::Relaxed);
    SESSION.fetch_add(1, Ordering::Relaxed);
    sampling::end_sampling(py);
    py.detach(|| Recorder::get().finish());
}

/// Ends recording in this process, and removes the empty lines from its fragment, so that every line is a JSON object.
#[pyfunction]
pub(crate) fn close(py: Python<'_>) {
    let fragment = current_fragment();
    finish(py);
    if let Some(fragment) = fragment {
        py.detach(|| plain::remove_empty_lines(&fragment));
    }
}

/// Returns the number of the current session. It changes when a recording starts and when one ends.
#[pyfunction]
pub(crate) fn session() -> u64 {
    SESSION.load(Ordering::Relaxed)
}

/// Returns the path of the current recording's fragment, or None without a recording. In the child of a fork, the call starts the recording.
#[pyfunction]
pub(crate) fn current_fragment() -> Option<PathBuf> {
    is_under_way().then(|| Recorder::get().fragment()).flatten()
}

/// Returns true if a recording is under way, in this process or in the one that forked it. The call starts nothing.
#[pyfunction]
pub(crate) fn is_under_way() -> bool {
    let is_there = HAS_BEGUN.load(Ordering::Relaxed) || !Recorder::get().exports().is_empty();
    is_there && !HAS_ENDED.load(Ordering::Relaxed)
}

/// Returns the environment variables through which child processes find the run. The map is empty before the first event.
#[pyfunction]
pub(crate) fn exports() -> HashMap<&'static str, OsString> {
    Recorder::get().exports().into_iter().collect()
}

/// Returns a new, unique run id.
#[pyfunction]
pub(crate) fn new_run_id() -> String {
    sa_recorder::new_run_id()
}

/// Returns true if this program has rights that its caller lacks, for example through setuid. It then ignores the environment's settings for recording.
#[pyfunction]
pub(crate) fn is_privileged() -> bool {
    host::is_privileged()
}

/// Returns true if the environment requests a recording that has neither started nor failed. Returns false if the recording would start switched off.
#[pyfunction]
pub(crate) fn is_pending() -> bool {
    let [directory, others @ ..] = REQUEST_VARIABLES.map(host::variable);
    let is_requested =
        directory.is_some_and(|path| !path.is_empty()) || others.iter().any(Option::is_some);
    let config = || Config::from_lookup(host::variable);
    is_requested && !is_under_way() && !config().is_some_and(|config| config.paused || has_failed())
}

/// Returns true if the recorder failed to start although the environment asks for levels. Until it starts, these levels are on. If a program has set the
/// variables after importing the package, the recorder may have checked them before, and the drop-in starts anyway.
fn has_failed() -> bool {
    WAS_REQUESTED.load(Ordering::Relaxed)
        && !HAS_ENDED.load(Ordering::Relaxed)
        && Recorder::get().levels() == Levels::NONE
}

/// Stores, when the package is imported, whether the environment variables ask for recording.
pub(crate) fn store_request() {
    let was_requested = Config::from_lookup(host::variable).is_some();
    WAS_REQUESTED.store(was_requested, Ordering::Relaxed);
}
