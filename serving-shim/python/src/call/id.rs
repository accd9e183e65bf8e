//! Ids of requests, flows and lanes: texts, ints and UUIDs.

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

/// An id as an event has it.
pub(crate) enum Id<'py> {
    Text(Bound<'py, PyString>),
    Number(Bound<'py, PyInt>),
}

/// The id that an object stands for. What most ids are is asked first: to ask for `__index__` takes long where there is none.
pub(crate) fn of<'py>(what: &str, id: &Bound<'py, PyAny>) -> PyResult<Id<'py>> {
    if let Ok(text) = id.cast::<PyString>() {
        return Ok(Id::Text(text.clone()));
    }
    if let Ok(number) = id.cast::<PyInt>() {
        return Ok(Id::Number(number.clone()));
    }
    if is_uuid(id) {
        return id.str().map(Id::Text);
    }
    if let Some(number) = index(id)? {
        return Ok(Id::Number(number));
    }
    let found = id.get_type();
    Err(PyTypeError::new_err(format!(
        "{what}: expected a str, an int or a UUID, found {found}"
    )))
}

/// The id as text. An int and a UUID are what `str` makes of them.
pub(crate) fn text<'py>(what: &str, id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    match of(what, id)? {
        Id::Text(text) => Ok(text),
        Id::Number(number) => number.str(),
    }
}

/// The int of an object's `__index__`, as numpy's have it. What that raises passes, but for a `TypeError`, which objects without one raise.
fn index<'py>(id: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyInt>>> {
    // SAFETY: the object is alive.
    let number = unsafe { ffi::PyNumber_Index(id.as_ptr()) };
    // SAFETY: a new reference, or null with an error set.
    match unsafe { Bound::from_owned_ptr_or_err(id.py(), number) } {
        Ok(number) => Ok(number.cast_into().ok()),
        Err(error) if error.is_instance_of::<PyTypeError>(id.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether it is a UUID; the module `uuid` is not imported for the question.
pub(crate) fn is_uuid(object: &Bound<'_, PyAny>) -> bool {
    let kind = object.get_type();
    let module = kind.module();
    module.is_ok_and(|module| module == "uuid") && kind.name().is_ok_and(|name| name == "UUID")
}
