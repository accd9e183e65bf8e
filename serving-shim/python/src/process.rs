//! Functions about the process: its names, its run and its fragment.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet};
use sa_recorder::{Levels, Recorder};

use crate::point::encode_args;
use crate::task::modules;
use crate::{names, session, tasks, thread_setup};

/// Sets the name of the process in the trace. A later call renames it.
///
/// Arguments:
///     name: the name.
///
/// An example::
///
///     sa_profile.set_process_name("worker-0")
#[pyfunction]
#[pyo3(signature = (name, /))]
pub(crate) fn set_process_name(name: &Bound<'_, PyAny>) -> PyResult<()> {
    let text = names::text("name", name)?;
    // A paused process has a name too, which `sa-profile status` shows.
    if Recorder::get().levels() != Levels::NONE || Recorder::get().fragment().is_some() {
        thread_setup::mark_named();
        thread_setup::prepare_thread(name.py());
        Recorder::get().set_process_name(&text);
    }
    Ok(())
}

/// Records the settings of the inference engine that runs in this process. A paused process records them too. Later settings replace them.
#[pyfunction]
#[pyo3(signature = (settings, /))]
pub(crate) fn engine_settings(settings: &Bound<'_, PyDict>) {
    if Recorder::get().levels() != Levels::NONE || Recorder::get().fragment().is_some() {
        Recorder::get().set_engine_settings(&encode_args(Some(settings)));
    }
}

/// Sets the name of the calling thread in the trace. A thread that Python started already has its Python name there.
///
/// Arguments:
///     name: the name.
///
/// An example::
///
///     sa_profile.set_thread_name("loader")
#[pyfunction]
#[pyo3(signature = (name, /))]
pub(crate) fn set_thread_name(name: &Bound<'_, PyAny>) -> PyResult<()> {
    let text = names::text("name", name)?;
    if Recorder::get().levels() != Levels::NONE {
        thread_setup::prepare_thread(name.py());
        Recorder::get().set_thread_name(&text);
    }
    Ok(())
}

/// Returns true if events of this level are recorded or, without a level, if any are. The call starts nothing.
#[pyfunction]
#[pyo3(signature = (level=None))]
pub(crate) fn is_enabled(level: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
    let on = Recorder::get().levels();
    match level {
        None => Ok(on != Levels::NONE),
        Some(_) => Ok(on.0 & names::level(level)?.bit() != 0),
    }
}

/// Returns the set of recorded levels, out of `"e2e"`, `"kernel"` and `"verbose"`.
///
/// An example::
///
///     if "verbose" in sa_profile.levels():
///         sa_profile.instant("cache", level="verbose", blocks=list(blocks))
#[pyfunction]
pub(crate) fn levels(py: Python<'_>) -> PyResult<Bound<'_, PyFrozenSet>> {
    let on = Recorder::get().levels().list().into_iter();
    PyFrozenSet::new(py, on.map(names::level_name))
}

/// Returns the current time as events have it: in ns of `CLOCK_MONOTONIC`.
///
/// An example::
///
///     began_ns = sa_profile.now_ns()
///     answer = ask()
///     sa_profile.duration("ask", start_ns=began_ns, dur_ns=sa_profile.now_ns() - began_ns)
#[pyfunction]
pub(crate) fn now_ns() -> u64 {
    sa_recorder::now_ns()
}

/// Writes everything recorded so far to the fragment. The recorder does that by itself four times a second.
///
/// An example::
///
///     sa_profile.flush()
///     lines = open(sa_profile.fragment()).readlines()
#[pyfunction]
pub(crate) fn flush(py: Python<'_>) {
    py.detach(|| Recorder::get().flush());
}

/// Returns the number of events lost so far in this process.
///
/// An example::
///
///     if lost := sa_profile.dropped():
///         logger.warning("%d events are missing", lost)
#[pyfunction]
pub(crate) fn dropped() -> u64 {
    Recorder::get().dropped()
}

/// Returns true if this is the main process of its run.
///
/// An example::
///
///     if sa_profile.is_main():
///         report = sa_profile.merge()
#[pyfunction]
pub(crate) fn is_main() -> bool {
    Recorder::get().is_main()
}

/// Returns the id of the run that this process records into, or None if it records nothing.
///
/// An example::
///
///     logger.info("run %s", sa_profile.run())  # 20261127-035246-9f80f1e7
#[pyfunction]
pub(crate) fn run() -> Option<String> {
    Recorder::get().run()
}

/// Returns the run directory, or None if this process records nothing.
///
/// An example::
///
///     logger.info("recording into %s", sa_profile.directory())
#[pyfunction]
pub(crate) fn directory() -> Option<PathBuf> {
    Recorder::get().directory()
}

/// Returns the path for the merged trace, or None if this process records nothing.
///
/// An example::
///
///     webbrowser.open(f"file://{sa_profile.trace()}")
#[pyfunction]
pub(crate) fn trace() -> Option<PathBuf> {
    Recorder::get().trace()
}

/// Returns the path of this process's fragment, or None if it records nothing.
///
/// An example::
///
///     sa_profile.flush()
///     lines = open(sa_profile.fragment()).readlines()
#[pyfunction]
pub(crate) fn fragment() -> Option<PathBuf> {
    Recorder::get().fragment()
}

/// Starts the recorder if its configuration says that it begins switched off, so that it can be switched on. Otherwise the first event starts it.
#[pyfunction]
pub(crate) fn attach(py: Python<'_>) {
    if Recorder::get().levels() == Levels::NONE {
        py.detach(|| Recorder::get().is_enabled()); // asking starts it
    }
}

/// Returns the environment variables through which child processes find the run that this process has begun, or will begin with its first event.
#[pyfunction]
pub(crate) fn announce() -> HashMap<&'static str, OsString> {
    Recorder::get().announce().into_iter().collect()
}

/// Updates the state of the extension in the child of a fork. The spans that are open in tasks belong to the parent, and threads need their names again.
#[pyfunction]
pub(crate) fn after_fork_in_child(py: Python<'_>) {
    tasks::forget();
    thread_setup::record_fork(py);
    thread_setup::prepare_again();
    let _ = watch_multiprocessing(py); // on failure, the merge still recovers the ring
}

/// Makes a child process that multiprocessing forks finish its recording. It exits with `os._exit`, which runs no exit handlers, and events in the ring would
/// be visible only after a merge.
fn watch_multiprocessing(py: Python<'_>) -> PyResult<()> {
    let util = modules(py).and_then(|modules| modules.get_item("multiprocessing.util").ok()?);
    let Some(util) = util else {
        return Ok(());
    };
    let watch = wrap_pyfunction!(in_child_of_multiprocessing, py)?;
    util.call_method1("register_after_fork", (&watch, &watch))
        .map(drop)
}

/// Registers a finalizer that ends the recording when the process exits. multiprocessing calls this in a child after it has dropped the parent's finalizers.
#[pyfunction]
fn in_child_of_multiprocessing(watch: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = watch.py();
    let util = py.import("multiprocessing.util")?;
    let finish = wrap_pyfunction!(session::finish, py)?;
    let last = PyDict::new(py);
    last.set_item("exitpriority", -1000)?;
    util.call_method("Finalize", (py.None(), finish), Some(&last))
        .map(drop)
}
