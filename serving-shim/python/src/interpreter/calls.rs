//! Calls of functions as the interpreter tells them (`sys.monitoring`, Python 3.12 on): spans for functions of the program, which stay what they are.
//!
//! **Data flow.** The first start of each code object comes here. `judge`, a function of Python, says whether it shall have spans, and has its end told too. The starts of all other code are
//! switched off then, each for itself, so they cost nothing more.

use std::collections::HashMap;
use std::sync::LazyLock;

use pyo3::exceptions::{PyException, PyGeneratorExit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use pyo3::{Borrowed, ffi, intern};

use crate::attached::Attached;
use crate::interpreter::lives;
use crate::span::Span;

/// What is known of a code object.
struct Known {
    /// Keeps the address.
    _code: Py<PyAny>,
    part: Part,
}

/// What a code object is here.
#[derive(Default)]
struct Part {
    /// The span of each of its calls.
    span: Option<Py<Span>>,
    /// It returns a new task.
    makes_tasks: bool,
    /// It is the coroutine of a task.
    is_root: bool,
}

static KNOWN: LazyLock<Attached<HashMap<usize, Known>>> =
    LazyLock::new(|| Attached::new(HashMap::new()));
static JUDGE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
/// What a callback returns to be called there no more.
static DISABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// What is known of a code object, if anything is.
fn look(py: Python<'_>, code: *mut ffi::PyObject) -> Option<Part> {
    let known = KNOWN.with(py, |known| {
        let part = &known.get(&code.addr())?.part;
        Some(Part {
            span: part.span.as_ref().map(|span| span.clone_ref(py)),
            ..*part
        })
    });
    known.flatten()
}

fn change(code: &Bound<'_, PyAny>, change: impl FnOnce(&mut Part)) {
    let kept = code.clone().unbind();
    KNOWN.with(code.py(), |known| {
        let place = known.entry(code.as_ptr().addr());
        let known = place.or_insert_with(|| Known {
            _code: kept,
            part: Part::default(),
        });
        change(&mut known.part);
    });
}

/// Whether it is known as the coroutine of a task.
pub(super) fn is_root(code: &Bound<'_, PyAny>) -> bool {
    look(code.py(), code.as_ptr()).is_some_and(|part| part.is_root)
}

/// Gives each call of this code the span.
#[pyfunction]
#[pyo3(signature = (code, span, /))]
pub(crate) fn track_code(code: &Bound<'_, PyAny>, span: Py<Span>) {
    // Of two threads that judge it at once, one has given it already, and opened it.
    change(code, |part| {
        part.span.get_or_insert(span);
    });
}

/// Shows the tasks that this code returns.
#[pyfunction]
#[pyo3(signature = (code, /))]
pub(crate) fn watch_task_maker(code: &Bound<'_, PyAny>) {
    change(code, |part| part.makes_tasks = true);
}

/// Ends the life of a task with this code, which is its coroutine's.
#[pyfunction]
#[pyo3(signature = (code, /))]
pub(crate) fn watch_root(code: &Bound<'_, PyAny>) {
    change(code, |part| part.is_root = true);
}

/// Takes what judges code, `judge(code, module)`, which returns whether it is tracked, and what a callback returns to be called no more.
#[pyfunction]
#[pyo3(signature = (judge, disable, /))]
pub(crate) fn set_judge(py: Python<'_>, judge: Py<PyAny>, disable: Py<PyAny>) {
    let _ = JUDGE.set(py, judge); // once in a process
    let _ = DISABLE.set(py, disable);
}

/// Opens the span of a function that starts: a callback of `sys.monitoring`.
#[pyfunction]
#[pyo3(signature = (code, _offset, /), text_signature = "(code, offset, /)")]
pub(crate) fn function_started(
    code: &Bound<'_, PyAny>,
    _offset: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let py = code.py();
    // What is known as a task's coroutine alone is still to be judged.
    let known = look(py, code.as_ptr());
    if let Some(part) = known.filter(|part| part.span.is_some()) {
        enter(py, part);
        return Ok(py.None());
    }
    let is_tracked = sent(py, judge(code))?;
    match look(py, code.as_ptr()) {
        Some(part) if is_tracked => enter(py, part),
        _ => return Ok(disabled(py)),
    }
    Ok(py.None())
}

/// Passes on what somebody sent to this thread while Python ran for us, such as `KeyboardInterrupt`. Errors of our own are no host's.
fn sent<T: Default>(py: Python<'_>, result: PyResult<T>) -> PyResult<T> {
    result.or_else(|error| {
        let is_ours = error.is_instance_of::<PyException>(py);
        if is_ours {
            Ok(T::default())
        } else {
            Err(error)
        }
    })
}

fn enter(py: Python<'_>, part: Part) {
    if let Some(span) = part.span {
        Span::enter(span.bind(py));
    }
}

#[cold]
fn judge(code: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = code.py();
    let Some(judge) = JUDGE.get(py) else {
        return Ok(false);
    };
    // SAFETY: the thread is attached.
    let globals = unsafe { ffi::PyEval_GetGlobals() };
    // SAFETY: borrowed from the frame that starts, which lives as long as this call; or null.
    let globals = unsafe { Borrowed::from_ptr_or_opt(py, globals) };
    let globals = globals.and_then(|globals| globals.cast_exact::<PyDict>().ok());
    let module = globals.and_then(|globals| globals.get_item(intern!(py, "__name__")).ok()?);
    judge.bind(py).call1((code, module))?.is_truthy()
}

fn disabled(py: Python<'_>) -> Py<PyAny> {
    let disable = DISABLE.get(py).map(|disable| disable.clone_ref(py));
    disable.unwrap_or_else(|| py.None())
}

/// Ends the span of a function that returns: a callback of `sys.monitoring`.
#[pyfunction]
#[pyo3(signature = (code, _offset, result, /), text_signature = "(code, offset, result, /)")]
pub(crate) fn function_returned(
    code: &Bound<'_, PyAny>,
    _offset: &Bound<'_, PyAny>,
    result: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = code.py();
    if let Some(part) = look(py, code.as_ptr()) {
        if let Some(span) = part.span {
            Span::exit(span.bind(py), None);
        }
        if part.is_root {
            lives::end(py, None, false);
        }
        if part.makes_tasks {
            // An error here is nobody's: the task is of a kind that has no such coroutine.
            sent(py, lives::begin(result))?;
        }
    }
    Ok(())
}

/// Ends the span of a function that an exception leaves: a callback of `sys.monitoring`.
#[pyfunction]
#[pyo3(signature = (code, _offset, error, /), text_signature = "(code, offset, error, /)")]
pub(crate) fn function_unwound(
    code: &Bound<'_, PyAny>,
    _offset: &Bound<'_, PyAny>,
    error: &Bound<'_, PyAny>,
) {
    let py = code.py();
    if let Some(part) = look(py, code.as_ptr()) {
        let kind = error.get_type();
        let is_closed = kind.is(py.get_type::<PyGeneratorExit>());
        if let Some(span) = part.span {
            Span::exit_unwound(span.bind(py), &kind, is_closed);
        }
        if part.is_root {
            lives::end(py, Some(&kind), is_closed);
        }
    }
}
