//! [`NullSpan`]: replaces every span that is not recorded.

use pyo3::prelude::*;

/// A span that is not recorded.
#[pyclass(frozen, module = "sa_profile")]
pub(crate) struct NullSpan;

#[pymethods]
impl NullSpan {
    #[new]
    fn new() -> NullSpan {
        NullSpan
    }

    fn __enter__(&self) {}

    #[pyo3(signature = (kind=None, value=None, traceback=None, /))]
    fn __exit__(
        &self,
        kind: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) {
        let _ = (kind, value, traceback);
    }

    /// Returns the decorated function unchanged, because this span records nothing.
    #[pyo3(signature = (function, /))]
    fn __call__(&self, function: Py<PyAny>) -> Py<PyAny> {
        function
    }
}
