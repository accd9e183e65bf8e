//! Spans for calls that `sys.monitoring` reports (Python 3.12 or later). The program's functions stay unchanged.
//!
//! **Data flow.** The first call of each code object is reported here. `filter`, a Python function, decides whether it gets spans, and then also enables the event for its end. The event for
//! the start of any other code object is disabled for that object, so further calls cost nothing.

use std::collections::HashMap;
use std::sync::LazyLock;

use pyo3::exceptions::{PyException, PyGeneratorExit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use pyo3::{Borrowed, ffi, intern};

use crate::attached::Attached;
use crate::interpreter::task_spans;
use crate::span::Span;

/// A code object that is tracked or belongs to a task.
struct TrackedCode {
    /// Kept alive, so that no other object gets its address.
    _code: Py<PyAny>,
    code_use: CodeUse,
}

/// The uses of a code object.
#[derive(Default)]
struct CodeUse {
    /// Span for each of its calls.
    span: Option<Py<Span>>,
    /// True if it returns a new task.
    creates_tasks: bool,
    /// True if it is the coroutine of a task.
    is_task_coroutine: bool,
}

static CODES: LazyLock<Attached<HashMap<usize, TrackedCode>>> =
    LazyLock::new(|| Attached::new(HashMap::new()));
static FILTER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
/// Return value of a callback that disables its event.
static DISABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Returns what is recorded about calls of this code object, or `None` if it is not registered.
fn find_use(py: Python<'_>, code: *mut ffi::PyObject) -> Option<CodeUse> {
    let code_use = CODES.with(py, |codes| {
        let code_use = &codes.get(&code.addr())?.code_use;
        Some(CodeUse {
            span: code_use.span.as_ref().map(|span| span.clone_ref(py)),
            ..*code_use
        })
    });
    code_use.flatten()
}

fn update_use(code: &Bound<'_, PyAny>, update: impl FnOnce(&mut CodeUse)) {
    let code_object = code.clone().unbind();
    CODES.with(code.py(), |codes| {
        let entry = codes.entry(code.as_ptr().addr());
        let tracked = entry.or_insert_with(|| TrackedCode {
            _code: code_object,
            code_use: CodeUse::default(),
        });
        update(&mut tracked.code_use);
    });
}

/// Returns true if the code object is registered as the code of an asyncio task's coroutine.
pub(super) fn is_task_coroutine(code: &Bound<'_, PyAny>) -> bool {
    find_use(code.py(), code.as_ptr()).is_some_and(|code_use| code_use.is_task_coroutine)
}

/// Makes each call of this code object open and close `span`, from now on.
#[pyfunction]
#[pyo3(signature = (code, span, /))]
pub(crate) fn track_code(code: &Bound<'_, PyAny>, span: Py<Span>) {
    // If two threads decide about it at once, one has set a span already, and opened it.
    update_use(code, |code_use| {
        code_use.span.get_or_insert(span);
    });
}

/// Registers the code of a function that returns new asyncio tasks. The lifetime of each such task is recorded as a span.
#[pyfunction]
#[pyo3(signature = (code, /))]
pub(crate) fn watch_task_creator(code: &Bound<'_, PyAny>) {
    update_use(code, |code_use| code_use.creates_tasks = true);
}

/// Registers the code of an asyncio task's coroutine, so that the end of the coroutine ends the task's span.
#[pyfunction]
#[pyo3(signature = (code, /))]
pub(crate) fn watch_task_coroutine(code: &Bound<'_, PyAny>) {
    update_use(code, |code_use| code_use.is_task_coroutine = true);
}

/// Sets the Python function `filter(code, module)`, which returns true if calls of a code object are recorded. `disable` is what a callback of
/// `sys.monitoring` returns to disable its event.
#[pyfunction]
#[pyo3(signature = (filter, disable, /))]
pub(crate) fn set_code_filter(py: Python<'_>, filter: Py<PyAny>, disable: Py<PyAny>) {
    let _ = FILTER.set(py, filter); // only once per process
    let _ = DISABLE.set(py, disable);
}

/// Opens the span of a Python function that starts. Asks the filter if the function is new. Python calls this as a callback of `sys.monitoring`. The result
/// disables the event for a function without spans.
#[pyfunction]
#[pyo3(signature = (code, _offset, /), text_signature = "(code, offset, /)")]
pub(crate) fn function_started(
    code: &Bound<'_, PyAny>,
    _offset: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let py = code.py();
    // Code that is only known as a task's coroutine has not been checked yet.
    let code_use = find_use(py, code.as_ptr());
    if let Some(code_use) = code_use.filter(|code_use| code_use.span.is_some()) {
        enter(py, code_use);
        return Ok(py.None());
    }
    let is_tracked = pass_interrupts(py, is_selected(code))?;
    match find_use(py, code.as_ptr()) {
        Some(code_use) if is_tracked => enter(py, code_use),
        _ => return Ok(disabled(py)),
    }
    Ok(py.None())
}

/// Ignores an error of our own Python code, which is not the host's concern. Returns an error that was sent to this thread while that code ran, such as
/// `KeyboardInterrupt`.
fn pass_interrupts<T: Default>(py: Python<'_>, result: PyResult<T>) -> PyResult<T> {
    result.or_else(|error| {
        let is_ours = error.is_instance_of::<PyException>(py);
        if is_ours {
            Ok(T::default())
        } else {
            Err(error)
        }
    })
}

fn enter(py: Python<'_>, code_use: CodeUse) {
    if let Some(span) = code_use.span {
        Span::enter(span.bind(py));
    }
}

#[cold]
fn is_selected(code: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = code.py();
    let Some(filter) = FILTER.get(py) else {
        return Ok(false);
    };
    // SAFETY: the thread is attached.
    let globals = unsafe { ffi::PyEval_GetGlobals() };
    // SAFETY: borrowed from the starting frame, which outlives this call, or null.
    let globals = unsafe { Borrowed::from_ptr_or_opt(py, globals) };
    let globals = globals.and_then(|globals| globals.cast_exact::<PyDict>().ok());
    let module = globals.and_then(|globals| globals.get_item(intern!(py, "__name__")).ok()?);
    filter.bind(py).call1((code, module))?.is_truthy()
}

fn disabled(py: Python<'_>) -> Py<PyAny> {
    let disable = DISABLE.get(py).map(|disable| disable.clone_ref(py));
    disable.unwrap_or_else(|| py.None())
}

/// Ends the span of a Python function that returns. Python calls this as a callback of `sys.monitoring`.
#[pyfunction]
#[pyo3(signature = (code, _offset, result, /), text_signature = "(code, offset, result, /)")]
pub(crate) fn function_returned(
    code: &Bound<'_, PyAny>,
    _offset: &Bound<'_, PyAny>,
    result: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = code.py();
    if let Some(code_use) = find_use(py, code.as_ptr()) {
        if let Some(span) = code_use.span {
            Span::exit(span.bind(py), None);
        }
        if code_use.is_task_coroutine {
            task_spans::end(py, None, false);
        }
        if code_use.creates_tasks {
            // Ignore errors here: they mean that a task of this kind has no Python coroutine.
            pass_interrupts(py, task_spans::begin(result))?;
        }
    }
    Ok(())
}

/// Ends the span of a Python function that ends with an exception. Python calls this as a callback of `sys.monitoring`.
#[pyfunction]
#[pyo3(signature = (code, _offset, error, /), text_signature = "(code, offset, error, /)")]
pub(crate) fn function_unwound(
    code: &Bound<'_, PyAny>,
    _offset: &Bound<'_, PyAny>,
    error: &Bound<'_, PyAny>,
) {
    let py = code.py();
    if let Some(code_use) = find_use(py, code.as_ptr()) {
        let kind = error.get_type();
        let is_closed = kind.is(py.get_type::<PyGeneratorExit>());
        if let Some(span) = code_use.span {
            Span::exit_unwound(span.bind(py), &kind, is_closed);
        }
        if code_use.is_task_coroutine {
            task_spans::end(py, Some(&kind), is_closed);
        }
    }
}
