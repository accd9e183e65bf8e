//! Records long imports as spans, and calls listeners when a module has been imported. The import system calls two functions for each module that is not yet
//! imported, and this module replaces both. Finders, loaders and specs stay unchanged.

use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3::{PyClass, PyTypeInfo};
use sa_recorder::{Args, now_ns};

use super::record_span;

/// Minimum duration of a recorded import. A start of a program has thousands of shorter ones.
const SHORTEST_NS: u64 = 1_000_000;

/// Replaces the function that finds and loads a module, and records a span if that takes long.
#[pyclass(frozen)]
struct FindAndLoad {
    original: Py<PyAny>,
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
        let began_ns = now_ns();
        let result = self.original.bind(py).call(args, keywords);
        let took_ns = now_ns() - began_ns;
        if took_ns >= SHORTEST_NS
            && let Ok(module) = args.get_item(0).and_then(|name| name.extract::<String>())
        {
            let name = format!("import {module}");
            record_span(py, &name, (began_ns, took_ns), Args::new);
        }
        result
    }
}

/// Replaces the function that loads a module from its spec, once and under the module's lock. The listeners are called under that lock too.
#[pyclass(frozen)]
struct LoadUnlocked {
    original: Py<PyAny>,
    /// Functions to call with the name of each loaded module, and the module.
    listeners: Py<PyList>,
}

#[pymethods]
impl LoadUnlocked {
    #[pyo3(signature = (spec, /))]
    fn __call__<'py>(&self, spec: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let module = self.original.bind(spec.py()).call1((spec,))?;
        // Other threads check this flag in the module's spec to find out whether to wait. No Python code runs between the end of the load and this line.
        let is_initializing = intern!(spec.py(), "_initializing");
        let _ = spec.setattr(is_initializing, true); // if the spec refuses, threads do not wait, as without this hook
        let result = self.call_listeners(spec, &module);
        let _ = spec.setattr(is_initializing, false); // as above
        match result {
            Err(error) if error.is_instance_of::<PyException>(spec.py()) => {
                error.write_unraisable(spec.py(), Some(&module));
            }
            Err(interrupt) => {
                // The module is loaded, but its importer will not do the next step of the import.
                let _ = bind_to_parent(&module);
                return Err(interrupt);
            }
            Ok(()) => {}
        }
        Ok(module)
    }
}

impl LoadUnlocked {
    fn call_listeners(&self, spec: &Bound<'_, PyAny>, module: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = spec.getattr(intern!(spec.py(), "name"))?;
        for listener in self.listeners.bind(spec.py()) {
            listener.call1((&name, module))?;
        }
        Ok(())
    }
}

/// Makes an imported module an attribute of the package that contains it.
fn bind_to_parent(module: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = module.py();
    let name = module
        .getattr(intern!(py, "__name__"))?
        .extract::<String>()?;
    match name.rsplit_once('.') {
        Some((package, own)) => py.import(package)?.setattr(own, module),
        None => Ok(()),
    }
}

/// Records a span for each import that takes a millisecond or more, from now on. A second call does nothing.
#[pyfunction]
pub(crate) fn watch_imports(py: Python<'_>) -> PyResult<()> {
    let name = intern!(py, "_find_and_load");
    replace_function(name, |original| FindAndLoad { original }).map(|_| ())
}

/// Calls `listener(name, module)` when a module has been loaded, before any importer of it goes on.
#[pyfunction]
#[pyo3(signature = (listener, /))]
pub(crate) fn add_import_listener(listener: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = listener.py();
    let ours = replace_function(intern!(py, "_load_unlocked"), |original| LoadUnlocked {
        original,
        listeners: PyList::empty(py).unbind(),
    })?;
    ours.get().listeners.bind(py).append(listener)
}

/// Replaces a function of importlib by the object that `make` creates from the original function, and returns that object. Returns the existing object if the
/// function was already replaced.
fn replace_function<'py, T>(
    name: &Bound<'py, PyString>,
    make: impl FnOnce(Py<PyAny>) -> T,
) -> PyResult<Bound<'py, T>>
where
    T: PyClass + PyTypeInfo + Into<PyClassInitializer<T>>,
{
    let py = name.py();
    let machinery = py.import(intern!(py, "_frozen_importlib"))?;
    let original = match machinery.getattr(name)?.cast_into::<T>() {
        Ok(ours) => return Ok(ours),
        Err(error) => error.into_inner(),
    };
    if !original.is_callable() {
        return Err(PyRuntimeError::new_err(format!(
            "expected a function {name} of importlib"
        )));
    }
    let ours = Bound::new(py, make(original.unbind()))?;
    machinery.setattr(name, &ours)?;
    Ok(ours)
}
