//! Recording that Python begins and ends: which recording is under way, and what child processes must know of it.

mod plain;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use pyo3::prelude::*;
use sa_recorder::{Config, Level, Levels, Recorder, host};

use crate::interpreter::sampling;
use crate::{names, start};

/// Goes up when a recording begins, and when one ends. A fork does not change it: the child goes on with its parent's.
static SESSION: AtomicU64 = AtomicU64::new(1);
/// Python has begun a recording, here or in the process that forked this one.
static IS_BEGUN: AtomicBool = AtomicBool::new(false);
/// The last recording has ended.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// The environment has asked for recording since the package was imported.
static WAS_ASKED: AtomicBool = AtomicBool::new(false);
/// Whether anything asks for recording, once somebody has looked.
static ASKED: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const UNASKED: u8 = 1;
const IS_ASKED: u8 = 2;

/// The variables that turn recording on by being there, for the drop-in.
const ASKING: [&str; 3] = ["SA_PROFILE_DIR", "SA_PROFILE_OUTPUT", "SA_PROFILE_LEVEL"];

/// Whether nothing asks for recording: no variable, and no call before this one. Then nothing will be recorded before such a call.
#[inline]
pub(crate) fn is_unasked() -> bool {
    match ASKED.load(Ordering::Relaxed) {
        UNKNOWN => look_for_variables(),
        asked => asked == UNASKED,
    }
}

/// The answer holds once the recorder has looked as well, which the first event has it do: until then a program may set variables.
#[cold]
fn look_for_variables() -> bool {
    if sa_recorder::__wants(Level::E2e) {
        return false;
    }
    let is_asked = is_under_way() || ASKING.iter().any(|name| host::variable(name).is_some());
    let asked = if is_asked { IS_ASKED } else { UNASKED };
    ASKED.store(asked, Ordering::Relaxed);
    !is_asked
}

/// Ends what is recorded and begins what these variables ask for, as if they were the environment; its number, and what was wrong, if anything.
#[pyfunction]
#[pyo3(signature = (variables, name, /))]
pub(crate) fn start_with(
    py: Python<'_>,
    variables: HashMap<String, OsString>,
    name: &Bound<'_, PyAny>,
) -> PyResult<(u64, Option<String>)> {
    let name = names::text("name", name)?;
    start::mark_named();
    ASKED.store(IS_ASKED, Ordering::Relaxed);
    close(py); // of the recording that this one follows
    let started =
        py.detach(|| Recorder::start_named(&name, |name| variables.get(name).cloned()).map(drop));
    let error = started.err().map(|error| error.to_string());
    if error.is_none() {
        IS_BEGUN.store(true, Ordering::Relaxed);
        HAS_ENDED.store(false, Ordering::Relaxed);
    }
    let number = SESSION.fetch_add(1, Ordering::Relaxed) + 1;
    start::prepare_again();
    sampling::sample_again();
    Ok((number, error))
}

/// Ends recording in this process, for good; what was recorded is in the fragment then.
///
/// An example::
///
///     sa_profile.finish()
///     os._exit(0)  # runs nothing that would have done it
#[pyfunction]
pub(crate) fn finish(py: Python<'_>) {
    HAS_ENDED.store(true, Ordering::Relaxed);
    SESSION.fetch_add(1, Ordering::Relaxed);
    sampling::end_sampling(py);
    py.detach(|| Recorder::get().finish());
}

/// Ends recording in this process, and leaves nothing in its fragment but lines that are objects.
#[pyfunction]
pub(crate) fn close(py: Python<'_>) {
    let fragment = recording();
    finish(py);
    if let Some(fragment) = fragment {
        py.detach(|| plain::without_empty_lines(&fragment));
    }
}

/// The number of the recording under way.
#[pyfunction]
pub(crate) fn session() -> u64 {
    SESSION.load(Ordering::Relaxed)
}

/// The path of the fragment of the recording under way; in the child of a fork it begins with the question.
#[pyfunction]
pub(crate) fn recording() -> Option<PathBuf> {
    is_under_way().then(|| Recorder::get().fragment()).flatten()
}

/// Whether a recording is under way, here or in the process that forked this one; starts nothing.
#[pyfunction]
pub(crate) fn is_under_way() -> bool {
    let is_there = IS_BEGUN.load(Ordering::Relaxed) || !Recorder::get().exports().is_empty();
    is_there && !HAS_ENDED.load(Ordering::Relaxed)
}

/// The variables by which child processes find the run; none before anything was recorded.
#[pyfunction]
pub(crate) fn exports() -> HashMap<&'static str, OsString> {
    Recorder::get().exports().into_iter().collect()
}

/// A run id that nothing has.
#[pyfunction]
pub(crate) fn new_run_id() -> String {
    sa_recorder::new_run_id()
}

/// Whether this program has rights that its caller lacks: then nothing that the environment says of recording counts.
#[pyfunction]
pub(crate) fn is_privileged() -> bool {
    host::is_privileged()
}

/// Whether a variable that turns recording on is there, be it empty, and nothing is being recorded yet, nor to begin switched off, nor refused.
#[pyfunction]
pub(crate) fn is_to_begin() -> bool {
    let [directory, others @ ..] = ASKING.map(host::variable);
    let is_asked =
        directory.is_some_and(|path| !path.is_empty()) || others.iter().any(Option::is_some);
    let config = || Config::from_lookup(host::variable);
    is_asked && !is_under_way() && !config().is_some_and(|config| config.paused || has_failed())
}

/// Whether the recorder could not begin, given that the environment asks for levels and none has begun: until it begins those are on. Where a
/// program has set the variables since it imported the package, the recorder may have looked before, and the drop-in begins all the same.
fn has_failed() -> bool {
    WAS_ASKED.load(Ordering::Relaxed)
        && !HAS_ENDED.load(Ordering::Relaxed)
        && Recorder::get().levels() == Levels::NONE
}

/// Notes whether the environment asks for recording now, as the package is imported.
pub(crate) fn note_variables() {
    let was_asked = Config::from_lookup(host::variable).is_some();
    WAS_ASKED.store(was_asked, Ordering::Relaxed);
}
