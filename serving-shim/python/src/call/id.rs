//! Ids of requests, flows and lanes: texts, ints and UUIDs.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

/// The id as text. An int and a UUID are what `str` makes of them.
pub(crate) fn text<'py>(what: &str, id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    if let Ok(text) = id.cast::<PyString>() {
        return Ok(text.clone());
    }
    if id.is_instance_of::<PyInt>() || is_uuid(id) {
        return id.str();
    }
    let found = id.get_type();
    Err(PyTypeError::new_err(format!(
        "{what}: expected a str, an int or a UUID, found {found}"
    )))
}

/// Whether it is a UUID; the module `uuid` is not imported for the question.
pub(crate) fn is_uuid(object: &Bound<'_, PyAny>) -> bool {
    let kind = object.get_type();
    let module = kind.module();
    module.is_ok_and(|module| module == "uuid") && kind.name().is_ok_and(|name| name == "UUID")
}
