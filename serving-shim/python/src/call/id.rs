//! Ids of requests, flows and lanes: str, int and UUID objects.

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

/// An id in the form that events use.
pub(crate) enum Id<'py> {
    Text(Bound<'py, PyString>),
    Number(Bound<'py, PyInt>),
}

/// Converts a Python argument to an id, which is a text or a number. `what` names the argument in the error message. The common types are checked first,
/// because a failed lookup of `__index__` is slow.
pub(crate) fn parse<'py>(what: &str, id: &Bound<'py, PyAny>) -> PyResult<Id<'py>> {
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

/// Converts a Python argument to the text of an id. For an int or a UUID, that is the result of `str`. `what` names the argument in the error message.
pub(crate) fn text<'py>(what: &str, id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    match parse(what, id)? {
        Id::Text(text) => Ok(text),
        Id::Number(number) => number.str(),
    }
}

/// Returns the int that an object's method `__index__` returns. Integers of numpy have this method. Returns `None` if there is no such method (a `TypeError`).
/// All other errors are passed on.
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

/// Returns true if the object is a UUID. Does not import the module `uuid`.
pub(crate) fn is_uuid(object: &Bound<'_, PyAny>) -> bool {
    let kind = object.get_type();
    let module = kind.module();
    module.is_ok_and(|module| module == "uuid") && kind.name().is_ok_and(|name| name == "UUID")
}
