//! Imports as spans, where they take long enough to be felt, and calls for those who wait for a module. The interpreter calls one function for each module that
//! is not there yet; ours stands in its place. Finders, loaders and specs stay what they are.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use sa_recorder::{Args, Level, duration, now_ns};

use crate::session::is_to_begin;
use crate::start;

/// Shorter ones are not told: a start has thousands.
const SHORTEST_NS: u64 = 1_000_000;

/// The function that finds and loads a module, with a span around what takes its time.
#[pyclass(frozen)]
struct FindAndLoad {
    original: Py<PyAny>,
    has_spans: AtomicBool,
    /// Called with the name of each module that was loaded, and the module.
    listeners: Py<PyList>,
}

#[pymethods]
impl FindAndLoad {
    #[pyo3(signature = (*args, **keywords))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let is_new = !is_there(args);
        let began_ns = now_ns();
        let result = self.original.bind(py).call(args, keywords);
        let took_ns = now_ns() - began_ns;
        if took_ns >= SHORTEST_NS && self.has_spans.load(Ordering::Relaxed) {
            tell(args, began_ns, took_ns);
        }
        let module = result?;
        if is_new {
            for listener in self.listeners.bind(py) {
                listener.call1((args.get_item(0)?, &module))?;
            }
        }
        Ok(module)
    }
}

/// Whether the module is there already, perhaps in part: whoever loads it tells of it.
fn is_there(args: &Bound<'_, PyTuple>) -> bool {
    // SAFETY: the thread is attached.
    let modules = unsafe { ffi::PyImport_GetModuleDict() };
    // SAFETY: a reference that the interpreter keeps; never null.
    let modules = unsafe { Bound::from_borrowed_ptr(args.py(), modules) };
    let name = args.get_item(0);
    name.and_then(|name| modules.contains(name))
        .unwrap_or(false)
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
    let ours = in_place(py)?;
    ours.get().has_spans.store(true, Ordering::Relaxed);
    Ok(())
}

/// Calls `listener(name, module)` after each import that has loaded a module, before its importer goes on.
#[pyfunction]
#[pyo3(signature = (listener, /))]
fn tell_imports(listener: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = listener.py();
    in_place(py)?.get().listeners.bind(py).append(listener)
}

/// Our function in the place of the interpreter's, which it takes unless it has it.
fn in_place(py: Python<'_>) -> PyResult<Bound<'_, FindAndLoad>> {
    let name = intern!(py, "_find_and_load");
    let machinery = py.import(intern!(py, "_frozen_importlib"))?;
    let original = machinery.getattr(name)?;
    let original = match original.cast_into::<FindAndLoad>() {
        Ok(ours) => return Ok(ours),
        Err(error) => error.into_inner(),
    };
    if !original.is_callable() {
        return Err(PyRuntimeError::new_err(
            "expected a function _find_and_load of importlib",
        ));
    }
    let ours = FindAndLoad {
        original: original.unbind(),
        has_spans: AtomicBool::new(false),
        listeners: PyList::empty(py).unbind(),
    };
    let ours = Bound::new(py, ours)?;
    machinery.setattr(name, &ours)?;
    Ok(ours)
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(watch_imports, module)?)?;
    module.add_function(wrap_pyfunction!(tell_imports, module)?)
}
