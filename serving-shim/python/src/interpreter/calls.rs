//! Spans for calls that `sys.monitoring` reports (Python 3.12 or later). The program's functions stay unchanged.
//!
//! **Data flow.** The first call of each code object is reported here. `judge`, a Python function, decides whether it gets spans, and then also enables the event for its end. The event for
//! the start of any other code object is disabled for that object, so further calls cost nothing.

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

/// A code object that plays a part here.
struct Known {
    /// Kept alive, so that no other object gets its address.
    _code: Py<PyAny>,
    part: Part,
}

/// The uses of a code object.
#[derive(Default)]
struct Part {
    /// Span for each of its calls.
    span: Option<Py<Span>>,
    /// True if it returns a new task.
    makes_tasks: bool,
    /// True if it is the coroutine of a task.
    is_root: bool,
}

static KNOWN: LazyLock<Attached<HashMap<usize, Known>>> =
    LazyLock::new(|| Attached::new(HashMap::new()));
static JUDGE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
/// Return value of a callback that disables its event.
static DISABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Returns what a code object is used for, if anything.
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

/// Returns true if the code object is registered as the coroutine of a task.
pub(super) fn is_root(code: &Bound<'_, PyAny>) -> bool {
    look(code.py(), code.as_ptr()).is_some_and(|part| part.is_root)
}

/// Records each call of this code object with the span.
#[pyfunction]
#[pyo3(signature = (code, span, /))]
pub(crate) fn track_code(code: &Bound<'_, PyAny>, span: Py<Span>) {
    // If two threads decide about it at once, one has set a span already, and opened it.
    change(code, |part| {
        part.span.get_or_insert(span);
    });
}

/// Records the tasks that this code object returns.
#[pyfunction]
#[pyo3(signature = (code, /))]
pub(crate) fn watch_task_maker(code: &Bound<'_, PyAny>) {
    change(code, |part| part.makes_tasks = true);
}

/// Registers the code of a task's coroutine, so that the end of the coroutine ends the task's span.
#[pyfunction]
#[pyo3(signature = (code, /))]
pub(crate) fn watch_root(code: &Bound<'_, PyAny>) {
    change(code, |part| part.is_root = true);
}

/// Sets the function `judge(code, module)`, which returns true if a code object is tracked, and the return value that disables a callback's event.
#[pyfunction]
#[pyo3(signature = (judge, disable, /))]
pub(crate) fn set_judge(py: Python<'_>, judge: Py<PyAny>, disable: Py<PyAny>) {
    let _ = JUDGE.set(py, judge); // only once per process
    let _ = DISABLE.set(py, disable);
}

/// Opens the span of a function that starts. Callback of `sys.monitoring`.
#[pyfunction]
#[pyo3(signature = (code, _offset, /), text_signature = "(code, offset, /)")]
pub(crate) fn function_started(
    code: &Bound<'_, PyAny>,
    _offset: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let py = code.py();
    // Code that is only known as a task's coroutine has not been judged yet.
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

/// Passes on exceptions that were sent to this thread while our Python code ran, such as `KeyboardInterrupt`. Our own errors are not the host's concern.
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
    // SAFETY: borrowed from the starting frame, which outlives this call, or null.
    let globals = unsafe { Borrowed::from_ptr_or_opt(py, globals) };
    let globals = globals.and_then(|globals| globals.cast_exact::<PyDict>().ok());
    let module = globals.and_then(|globals| globals.get_item(intern!(py, "__name__")).ok()?);
    judge.bind(py).call1((code, module))?.is_truthy()
}

fn disabled(py: Python<'_>) -> Py<PyAny> {
    let disable = DISABLE.get(py).map(|disable| disable.clone_ref(py));
    disable.unwrap_or_else(|| py.None())
}

/// Ends the span of a function that returns. Callback of `sys.monitoring`.
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
            // Ignore errors here: they mean that a task of this kind has no Python coroutine.
            sent(py, lives::begin(result))?;
        }
    }
    Ok(())
}

/// Ends the span of a function that ends with an exception. Callback of `sys.monitoring`.
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
