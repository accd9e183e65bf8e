//! Calls that nothing can be done with: the package says the first of each kind, and the program goes on.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

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
fn set_misuse(py: Python<'_>, no_number: Py<PyAny>, end_without_begin: Py<PyAny>) {
    let saying = Saying {
        no_number,
        end_without_begin,
    };
    let _ = SAYING.set(py, saying); // the package may be imported under a second name
}

/// A series of a counter is no number.
#[cold]
pub(crate) fn no_number(series: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) {
    let py = series.py();
    if is_first(&NO_NUMBER_SAID)
        && let Some(saying) = SAYING.get(py)
        && let Ok(kind) = value.get_type().name()
    {
        let _ = saying.no_number.bind(py).call1((series, kind)); // it is only words
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

fn is_first(said: &AtomicBool) -> bool {
    !said.swap(true, Ordering::Relaxed)
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_misuse, module)?)
}
