//! Takes one sample of what all threads of the interpreter run, while holding the GIL. No Python code runs meanwhile, not even the garbage collector, whose finalizers would run
//! on the sampling thread.
//!
//! Names are interned for each sample: pyo3's `intern!` releases the GIL when it creates a text, and the host might then find its garbage collector disabled.

use std::rc::Rc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use sa_recorder::now_ns;

use super::codes::{Codes, Function};
use crate::interpreter::subinterpreters::is_only_interpreter;
use crate::thread_setup;

/// Maximum depth to which a stack is walked.
const MAX_DEPTH: usize = 4096;
/// Maximum number of frames shown per stack, starting at the outermost. Viewers support at most 512 nested slices.
const MAX_SHOWN: usize = 256;

/// The stacks of all threads at one time.
pub(super) struct Sample {
    pub(super) at_ns: u64,
    pub(super) threads: Vec<ThreadSample>,
    /// Name that multiprocessing gave this process.
    pub(super) process_name: Option<String>,
}

/// The stack of one thread.
pub(super) struct ThreadSample {
    /// The thread's `threading.get_ident()`. Another thread may get the same one later.
    pub(super) ident: u64,
    /// Kernel id, or 0 if it is unknown.
    pub(super) native_id: u64,
    pub(super) name: Option<String>,
    /// Functions, starting at the outermost frame.
    pub(super) stack: Vec<Rc<Function>>,
}

/// Takes one sample of the stacks of all Python threads. The sample is empty if there are other interpreters, which may have their own GIL. `is_known` returns
/// true if the name of a thread is known, by its ident (Python's id) and its id in the Linux kernel.
pub(super) fn sample_threads(
    py: Python<'_>,
    codes: &mut Codes,
    is_known: impl Fn(u64, u64) -> bool,
) -> PyResult<Sample> {
    // Creating these objects may release the GIL, so it comes before the garbage collector is disabled.
    let (modules, current_frames) = sys_objects(py)?;
    if !is_only_interpreter(py) {
        return Ok(Sample {
            at_ns: now_ns(),
            threads: Vec::new(),
            process_name: None,
        });
    }
    let _pause = collects_anywhere(py).then(|| CollectorPause::begin(py));
    let f_back = PyString::intern(py, "f_back");
    let frames = current_frames.call0()?;
    let active = active_threads(modules);
    let at_ns = now_ns();
    let mut threads = Vec::new();
    for (ident, frame) in frames.cast::<PyDict>()?.iter() {
        let thread = active
            .as_ref()
            .and_then(|active| active.get_item(&ident).ok());
        let attribute = |name| thread.as_ref()?.getattr(name).ok();
        let native_id =
            attribute(PyString::intern(py, "_native_id")).and_then(|id| id.extract().ok());
        let (ident, native_id) = (ident.extract()?, native_id.unwrap_or(0));
        let name = || attribute(PyString::intern(py, "_name"))?.extract().ok();
        threads.push(ThreadSample {
            ident,
            native_id,
            name: if is_known(ident, native_id) {
                None
            } else {
                name()
            },
            stack: stack_of(codes, frame, &f_back),
        });
    }
    Ok(Sample {
        at_ns,
        threads,
        process_name: thread_setup::name_of_child(modules),
    })
}

/// Returns `sys.modules` and `sys._current_frames`. They are looked up only once, because an import runs Python code if the host has replaced `__import__`.
fn sys_objects(py: Python<'_>) -> PyResult<(&Bound<'_, PyDict>, &Bound<'_, PyAny>)> {
    static FOUND: PyOnceLock<(Py<PyDict>, Py<PyAny>)> = PyOnceLock::new();
    let (modules, frames) = FOUND.get_or_try_init(py, || {
        let sys = py.import("sys")?;
        let modules = sys.getattr("modules")?.cast_into::<PyDict>()?;
        PyResult::Ok((modules.unbind(), sys.getattr("_current_frames")?.unbind()))
    })?;
    Ok((modules.bind(py), frames.bind(py)))
}

/// Returns the dict of the threads that the module `threading` knows, by ident (Python's id). Only plain attributes of them are read, because a property would
/// run Python code.
fn active_threads<'py>(modules: &Bound<'py, PyDict>) -> Option<Bound<'py, PyAny>> {
    let py = modules.py();
    let threading = modules.get_item(PyString::intern(py, "threading")).ok()??;
    threading.getattr(PyString::intern(py, "_active")).ok()
}

/// Returns the functions on a thread's stack, the outermost first. `innermost` is the thread's current frame.
fn stack_of(
    codes: &mut Codes,
    innermost: Bound<'_, PyAny>,
    f_back: &Bound<'_, PyString>,
) -> Vec<Rc<Function>> {
    let mut stack = Vec::new();
    let mut frame = innermost;
    for _ in 0..MAX_DEPTH {
        let Some(code) = code_of(&frame) else {
            break;
        };
        stack.extend(codes.function(&frame, code));
        match frame.getattr(f_back) {
            Ok(back) if !back.is_none() => frame = back,
            _ => break,
        }
    }
    stack.reverse();
    stack.truncate(MAX_SHOWN);
    stack
}

fn code_of<'py>(frame: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: `sys._current_frames` and `f_back` return only frames.
    let code = unsafe { ffi::PyFrame_GetCode(frame.as_ptr().cast()) };
    // SAFETY: a new reference, which is never null for a frame.
    unsafe { Bound::from_owned_ptr_or_opt(frame.py(), code.cast()) }
}

/// Returns true if any thread that allocates a Python object may run the garbage collector. From Python 3.12 on, only threads that run Python code do.
fn collects_anywhere(py: Python<'_>) -> bool {
    py.version_info() < (3, 12)
}

/// Keeps the garbage collector disabled while it exists. An audit hook of the host may run meanwhile and notice.
struct CollectorPause<'py> {
    py: Python<'py>,
    was_on: bool,
}

impl<'py> CollectorPause<'py> {
    fn begin(py: Python<'py>) -> Self {
        // SAFETY: the thread is attached, as `py` shows.
        let was_on = unsafe { ffi::PyGC_Disable() } == 1;
        CollectorPause { py, was_on }
    }
}

impl Drop for CollectorPause<'_> {
    fn drop(&mut self) {
        let _attached = self.py;
        if self.was_on {
            // SAFETY: the thread is attached, as `py` shows.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}
