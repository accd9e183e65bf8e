//! Prepares a thread for its first event: sets its name from Python, and the process's name from multiprocessing.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use sa_recorder::Recorder;

use crate::task::modules;

/// Increases when threads must prepare again: after a fork, and when a new recording starts.
static GENERATION: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static PREPARED: Cell<u32> = const { Cell::new(0) };
}

/// Pid of the process if it has been named by the program or by multiprocessing.
static NAMED: AtomicU32 = AtomicU32::new(0);

/// Records that the program has named its process, so that the name from multiprocessing is not used.
pub(crate) fn mark_named() {
    NAMED.store(std::process::id(), Ordering::Relaxed);
}

/// Prepares the calling thread for its first event: sets the names of the thread and the process in the trace. Does nothing if it is prepared already.
#[inline]
pub(crate) fn prepare_thread(py: Python<'_>) {
    let generation = generation();
    if PREPARED.get() != generation {
        PREPARED.set(generation); // first, because preparing may record events
        prepare(py);
    }
}

/// Returns a number that identifies this process and its recording. It changes after a fork and when a recording starts, and never repeats in a process or its
/// children.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Makes every thread set its name again before its next event.
pub(crate) fn prepare_again() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Sets the names of the calling thread and the process in the trace, as Python knows them. On errors, a name is missing.
#[cold]
fn prepare(py: Python<'_>) {
    let Some(modules) = modules(py) else {
        return;
    };
    if let Ok(Some(name)) = thread_name(modules) {
        Recorder::get().set_thread_name(&name);
    }
    if NAMED.load(Ordering::Relaxed) == std::process::id() {
        return;
    }
    if let Some(name) = name_of_child(modules) {
        Recorder::get().set_process_name(&name);
    }
    mark_named();
}

/// Address of the object that described the parent process in multiprocessing, or 0 if this process was not forked.
static PARENTS_OBJECT: AtomicUsize = AtomicUsize::new(0);

/// Records that this process was just forked, so that multiprocessing's object for the parent is not used for this process. Called before multiprocessing
/// creates an object for the child.
pub(crate) fn record_fork(py: Python<'_>) {
    let object = modules(py).and_then(current_process);
    let address = object.map_or(0, |object| object.as_ptr().addr());
    PARENTS_OBJECT.store(address, Ordering::Relaxed);
}

/// Returns the name that multiprocessing gave this process, or `None` if it did not start the process, for example in a child that such a process forked
/// itself. Reads only plain attributes, because a property would run Python code.
pub(crate) fn name_of_child(modules: &Bound<'_, PyDict>) -> Option<String> {
    let process = current_process(modules)?;
    if process.as_ptr().addr() == PARENTS_OBJECT.load(Ordering::Relaxed) {
        return None;
    }
    attribute(&process, "_parent_pid").filter(|pid| !pid.is_none())?; // the main process has none
    attribute(&process, "_name")?.extract().ok()
}

/// Returns the object that describes this process in multiprocessing, if that module is imported.
fn current_process<'py>(modules: &Bound<'py, PyDict>) -> Option<Bound<'py, PyAny>> {
    let module = modules.get_item(PyString::intern(modules.py(), "multiprocessing.process"));
    attribute(&module.ok()??, "_current_process")
}

fn attribute<'py>(of: &Bound<'py, PyAny>, name: &str) -> Option<Bound<'py, PyAny>> {
    of.getattr(PyString::intern(of.py(), name)).ok()
}

/// Returns the name of the calling thread if Python started it. Other threads keep their names.
fn thread_name(modules: &Bound<'_, PyDict>) -> PyResult<Option<String>> {
    let Some(threading) = modules.get_item("threading")? else {
        return Ok(Some("MainThread".to_owned())); // no other thread can have been started
    };
    let id = threading.call_method0("get_ident")?;
    let thread = threading.getattr("_active")?.call_method1("get", (id,))?;
    if thread.is_none() {
        return Ok(None);
    }
    thread.getattr("name")?.extract().map(Some)
}
