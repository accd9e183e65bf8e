//! [`Nothing`]: a span that is not recorded, one object for all of them.

use pyo3::ffi;
use pyo3::prelude::*;

use crate::call;

/// A span that is not recorded.
///
/// A `with` block binds the methods that it finds on the type, which makes an object of each. A function of C is not bound, so these two stand on the type as
/// functions, and know nothing of `self`.
#[pyclass(frozen, module = "sa_profile")]
pub(crate) struct Nothing;

#[pymethods]
impl Nothing {
    #[new]
    fn new() -> Nothing {
        Nothing
    }

    /// Leaves a function as it is.
    #[pyo3(signature = (function, /))]
    fn __call__(&self, function: Py<PyAny>) -> Py<PyAny> {
        function
    }
}

fn nothing(py: Python<'_>) -> *mut ffi::PyObject {
    py.None().into_ptr()
}

call::bare_entries! {
    enter_entry => nothing;
    exit_entry => nothing;
}

/// A function for `__exit__` that does nothing.
pub(crate) fn exit<'py>(module: &Bound<'py, PyModule>) -> PyResult<Bound<'py, PyAny>> {
    let doc = c"Does nothing.";
    call::function(module, c"__exit__", exit_entry, doc)
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Nothing>()?;
    let kind = module.py().get_type::<Nothing>();
    let doc = c"Does nothing.";
    let enter = call::function(module, c"__enter__", enter_entry, doc)?;
    kind.setattr("__enter__", enter)?;
    kind.setattr("__exit__", exit(module)?)
}
