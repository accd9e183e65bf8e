//! Ids of requests, flows and lanes: texts, ints and UUIDs.

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

/// The id as text. An int and a UUID are what `str` makes of them.
pub(crate) fn text<'py>(what: &str, id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    if let Ok(text) = id.cast::<PyString>() {
        return Ok(text.clone());
    }
    if is_uuid(id) {
        return id.str();
    }
    if let Some(number) = number(id) {
        return number.str();
    }
    let found = id.get_type();
    Err(PyTypeError::new_err(format!(
        "{what}: expected a str, an int or a UUID, found {found}"
    )))
}

/// The int that an object stands for: itself, or that of its `__index__`, as numpy's have it.
pub(crate) fn number<'py>(id: &Bound<'py, PyAny>) -> Option<Bound<'py, PyInt>> {
    if let Ok(number) = id.cast::<PyInt>() {
        return Some(number.clone());
    }
    // SAFETY: the object is alive.
    let number = unsafe { ffi::PyNumber_Index(id.as_ptr()) };
    // SAFETY: a new reference, or null with an error set.
    let number = unsafe { Bound::from_owned_ptr_or_err(id.py(), number) };
    number.ok()?.cast_into().ok()
}

/// Whether it is a UUID; the module `uuid` is not imported for the question.
pub(crate) fn is_uuid(object: &Bound<'_, PyAny>) -> bool {
    let kind = object.get_type();
    let module = kind.module();
    module.is_ok_and(|module| module == "uuid") && kind.name().is_ok_and(|name| name == "UUID")
}
