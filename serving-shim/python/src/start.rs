//! What a thread does before its first event: it takes its name from Python, and the process tells its children of the run.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use sa_recorder::Recorder;

/// Goes up when what threads have prepared holds no more: after a fork, and when recording begins anew.
static GENERATION: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static PREPARED: Cell<u32> = const { Cell::new(0) };
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
    if let Ok(Some(name)) = thread_name(py) {
        Recorder::get().set_thread_name(&name);
    }
}

/// The name of a thread that Python started; any other keeps the one it has.
fn thread_name(py: Python<'_>) -> PyResult<Option<String>> {
    let modules = py
        .import(intern!(py, "sys"))?
        .getattr(intern!(py, "modules"))?;
    let Ok(threading) = modules.get_item("threading") else {
        return Ok(Some("MainThread".to_owned())); // nobody can have started another
    };
    let id = threading.call_method0("get_ident")?;
    let thread = threading.getattr("_active")?.call_method1("get", (id,))?;
    if thread.is_none() {
        return Ok(None);
    }
    thread.getattr("name")?.extract().map(Some)
}
