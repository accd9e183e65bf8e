//! One look at what all threads of the interpreter run, with its lock held. Nothing of Python runs meanwhile, not even the garbage collector: finalizers would find
//! themselves on our thread.
//!
//! Texts are interned at each look: pyo3's `intern!` gives the lock away when it makes one, and the host might find its collector off.

use std::rc::Rc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use sa_recorder::now_ns;

use super::codes::{Codes, Function};
use crate::interpreter::several::is_alone;
use crate::start;

/// The deepest stack that is walked.
const DEEPEST: usize = 4096;
/// Frames of a stack that are shown, from the outermost on: viewers hold no more than 512 slices within each other.
const SHOWN: usize = 256;

/// What was seen of all threads at one time.
pub(super) struct Sample {
    pub(super) at_ns: u64,
    pub(super) threads: Vec<ThreadSample>,
    /// The name that multiprocessing gave this process.
    pub(super) process_name: Option<String>,
}

/// What was seen of one thread.
pub(super) struct ThreadSample {
    /// As `threading.get_ident()` gives it; another thread may have it later.
    pub(super) ident: u64,
    /// The kernel's id, 0 if it is not known.
    pub(super) native_id: u64,
    pub(super) name: Option<String>,
    /// From the outermost frame on.
    pub(super) stack: Vec<Rc<Function>>,
}

/// Looks at all threads, or none beside other interpreters: theirs may have locks of their own. `is_known` says of an ident and a kernel's id whether the thread's name is.
pub(super) fn look(
    py: Python<'_>,
    codes: &mut Codes,
    is_known: impl Fn(u64, u64) -> bool,
) -> PyResult<Sample> {
    // What is made once gives the lock away meanwhile: before the collector is off.
    let (modules, current_frames) = interpreter(py)?;
    if !is_alone(py) {
        return Ok(Sample {
            at_ns: now_ns(),
            threads: Vec::new(),
            process_name: None,
        });
    }
    let _uncollected = collects_anywhere(py).then(|| Uncollected::begin(py));
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
        process_name: start::name_of_child(modules),
    })
}

/// `sys.modules` and `sys._current_frames`. They are asked for once: an import is code of Python where the host has replaced `__import__`.
fn interpreter(py: Python<'_>) -> PyResult<(&Bound<'_, PyDict>, &Bound<'_, PyAny>)> {
    static FOUND: PyOnceLock<(Py<PyDict>, Py<PyAny>)> = PyOnceLock::new();
    let (modules, frames) = FOUND.get_or_try_init(py, || {
        let sys = py.import("sys")?;
        let modules = sys.getattr("modules")?.cast_into::<PyDict>()?;
        PyResult::Ok((modules.unbind(), sys.getattr("_current_frames")?.unbind()))
    })?;
    Ok((modules.bind(py), frames.bind(py)))
}

/// The threads that the module `threading` knows, by their idents. Attributes alone are read of them: a property is code of Python.
fn active_threads<'py>(modules: &Bound<'py, PyDict>) -> Option<Bound<'py, PyAny>> {
    let py = modules.py();
    let threading = modules.get_item(PyString::intern(py, "threading")).ok()??;
    threading.getattr(PyString::intern(py, "_active")).ok()
}

/// The functions of a stack from its innermost frame, the outermost first.
fn stack_of(
    codes: &mut Codes,
    innermost: Bound<'_, PyAny>,
    f_back: &Bound<'_, PyString>,
) -> Vec<Rc<Function>> {
    let mut stack = Vec::new();
    let mut frame = innermost;
    for _ in 0..DEEPEST {
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
    stack.truncate(SHOWN);
    stack
}

fn code_of<'py>(frame: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: `sys._current_frames` and `f_back` give frames and nothing else.
    let code = unsafe { ffi::PyFrame_GetCode(frame.as_ptr().cast()) };
    // SAFETY: a new reference, which is never null for a frame.
    unsafe { Bound::from_owned_ptr_or_opt(frame.py(), code.cast()) }
}

/// Whether garbage is collected by whoever allocates. From Python 3.12 on only threads that run code of Python collect.
fn collects_anywhere(py: Python<'_>) -> bool {
    py.version_info() < (3, 12)
}

/// While it lives, no garbage is collected by what this thread allocates. An audit hook of the host runs meanwhile, and sees it.
struct Uncollected<'py> {
    py: Python<'py>,
    was_on: bool,
}

impl<'py> Uncollected<'py> {
    fn begin(py: Python<'py>) -> Self {
        // SAFETY: the thread is attached, as `py` shows.
        let was_on = unsafe { ffi::PyGC_Disable() } == 1;
        Uncollected { py, was_on }
    }
}

impl Drop for Uncollected<'_> {
    fn drop(&mut self) {
        let _attached = self.py;
        if self.was_on {
            // SAFETY: the thread is attached, as `py` shows.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}
