//! Imports as spans, where they take long enough to be felt. The interpreter calls one function for each module that is not there yet; ours stands in its place.

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sa_recorder::{Args, Level, duration, now_ns};

use crate::session::is_to_begin;
use crate::start;

/// Shorter ones are not told: a start has thousands.
const SHORTEST_NS: u64 = 1_000_000;

/// The function that finds and loads a module, with a span around what takes its time.
#[pyclass(frozen)]
struct FindAndLoad {
    original: Py<PyAny>,
}

#[pymethods]
impl FindAndLoad {
    #[pyo3(signature = (*args, **keywords))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let began_ns = now_ns();
        let result = self.original.call(py, args, keywords);
        let took_ns = now_ns() - began_ns;
        if took_ns >= SHORTEST_NS {
            tell(args, began_ns, took_ns);
        }
        result
    }
}

fn tell(args: &Bound<'_, PyTuple>, began_ns: u64, took_ns: u64) {
    let module = args.get_item(0).and_then(|name| name.extract::<String>());
    // Not as the first event: which process is the run's main one is for the program to decide.
    if sa_recorder::__wants(Level::E2e)
        && !is_to_begin()
        && let (Ok(module), Ok(took_ns)) = (module, i64::try_from(took_ns))
    {
        start::prepare_thread(args.py());
        let name = format!("import {module}");
        duration(
            Level::E2e,
            "python",
            &name,
            took_ns,
            Some(began_ns),
            &Args::new(),
        );
    }
}

/// Records imports that take a ms or more from now on; a second call does nothing.
#[pyfunction]
fn watch_imports(py: Python<'_>) -> PyResult<()> {
    let name = intern!(py, "_find_and_load");
    let machinery = py.import(intern!(py, "_frozen_importlib"))?;
    let original = machinery.getattr(name)?;
    if original.is_instance_of::<FindAndLoad>() {
        return Ok(());
    }
    if !original.is_callable() {
        return Err(PyRuntimeError::new_err(
            "expected a function _find_and_load of importlib",
        ));
    }
    let original = original.unbind();
    machinery.setattr(name, Bound::new(py, FindAndLoad { original })?)
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(watch_imports, module)?)
}
