//! What a thread does before its first event: it takes its name from Python, and its process that of multiprocessing.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use sa_recorder::Recorder;

use crate::task::modules;

/// Goes up when what threads have prepared holds no more: after a fork, and when recording begins anew.
static GENERATION: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static PREPARED: Cell<u32> = const { Cell::new(0) };
}

/// The process that has a name from the program, or from multiprocessing.
static NAMED: AtomicU32 = AtomicU32::new(0);

/// The program names its process: what multiprocessing calls it does not matter then.
pub(crate) fn mark_named() {
    NAMED.store(std::process::id(), Ordering::Relaxed);
}

/// Prepares the calling thread unless it is.
#[inline]
pub(crate) fn prepare_thread(py: Python<'_>) {
    let generation = generation();
    if PREPARED.get() != generation {
        PREPARED.set(generation); // before: what follows may record
        prepare(py);
    }
}

/// Which process and recording this is, as a number that never repeats in a process or its children.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Makes every thread prepare again.
pub(crate) fn prepare_again() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// An error on the way costs a name.
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

/// Address of the object that multiprocessing had for the process that forked this one; 0 without a fork.
static PARENTS_OBJECT: AtomicUsize = AtomicUsize::new(0);

/// Notes that this process was forked a moment ago, before multiprocessing makes it a process of its own.
pub(crate) fn note_fork(py: Python<'_>) {
    let object = modules(py).and_then(current_process);
    let address = object.map_or(0, |object| object.as_ptr().addr());
    PARENTS_OBJECT.store(address, Ordering::Relaxed);
}

/// Returns the name of a process that multiprocessing started; `None` in a child that such a process forked itself. Attributes alone are read: a property is code
/// of Python.
pub(crate) fn name_of_child(modules: &Bound<'_, PyDict>) -> Option<String> {
    let process = current_process(modules)?;
    if process.as_ptr().addr() == PARENTS_OBJECT.load(Ordering::Relaxed) {
        return None;
    }
    attribute(&process, "_parent_pid").filter(|pid| !pid.is_none())?; // else the main process
    attribute(&process, "_name")?.extract().ok()
}

/// Returns what multiprocessing has for this process, if it is imported.
fn current_process<'py>(modules: &Bound<'py, PyDict>) -> Option<Bound<'py, PyAny>> {
    let module = modules.get_item(PyString::intern(modules.py(), "multiprocessing.process"));
    attribute(&module.ok()??, "_current_process")
}

fn attribute<'py>(of: &Bound<'py, PyAny>, name: &str) -> Option<Bound<'py, PyAny>> {
    of.getattr(PyString::intern(of.py(), name)).ok()
}

/// The name of a thread that Python started; any other keeps the one it has.
fn thread_name(modules: &Bound<'_, PyDict>) -> PyResult<Option<String>> {
    let Some(threading) = modules.get_item("threading")? else {
        return Ok(Some("MainThread".to_owned())); // nobody can have started another
    };
    let id = threading.call_method0("get_ident")?;
    let thread = threading.getattr("_active")?.call_method1("get", (id,))?;
    if thread.is_none() {
        return Ok(None);
    }
    thread.getattr("name")?.extract().map(Some)
}
