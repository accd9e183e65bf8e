//! Calls that nothing can be done with: the package says the first of each kind, and the program goes on.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFloat, PyString, PyTuple};

/// What the package says of each kind.
static SAYING: PyOnceLock<Saying> = PyOnceLock::new();
static NO_NUMBER_SAID: AtomicBool = AtomicBool::new(false);
static END_WITHOUT_BEGIN_SAID: AtomicBool = AtomicBool::new(false);

struct Saying {
    no_number: Py<PyAny>,
    end_without_begin: Py<PyAny>,
}

/// Takes the package's part of saying: its words go where `sys.stderr` leads.
#[pyfunction]
#[pyo3(signature = (no_number, end_without_begin, /))]
pub(crate) fn set_misuse(py: Python<'_>, no_number: Py<PyAny>, end_without_begin: Py<PyAny>) {
    let saying = Saying {
        no_number,
        end_without_begin,
    };
    let _ = SAYING.set(py, saying); // the package may be imported under a second name
}

/// Reports that a series of a counter is not a finite number.
#[cold]
pub(crate) fn no_number(series: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) {
    let py = series.py();
    if is_first(&NO_NUMBER_SAID)
        && let Some(saying) = SAYING.get(py)
        && let Ok(found) = found(value)
    {
        let _ = saying.no_number.bind(py).call1((series, found)); // it is only words
    }
}

/// Returns what was found instead of a finite number: the value of a float, or the type of anything else.
fn found<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    match value.cast::<PyFloat>() {
        Ok(number) => Ok(PyString::new(value.py(), &number.value().to_string())),
        Err(_) => value.get_type().name(),
    }
}

/// Nothing was begun that `end` could end.
#[cold]
pub(crate) fn end_without_begin(py: Python<'_>) {
    if is_first(&END_WITHOUT_BEGIN_SAID)
        && let Some(saying) = SAYING.get(py)
    {
        let _ = saying.end_without_begin.bind(py).call1(PyTuple::empty(py));
    }
}

/// Has the package say, once, that a function that the hooks call has failed. Returns what is no `Exception`, as of a signal: that is the host's.
#[cold]
pub(crate) fn failed(py: Python<'_>, function: &str, error: PyErr) -> PyResult<()> {
    if !error.is_instance_of::<PyException>(py) {
        return Err(error);
    }
    if let Ok(warnings) = py.import("sa_profile._hooks.warnings") {
        let _ = warnings.call_method1("failed", (function, error)); // it is only words
    }
    Ok(())
}

fn is_first(said: &AtomicBool) -> bool {
    !said.swap(true, Ordering::Relaxed)
}
