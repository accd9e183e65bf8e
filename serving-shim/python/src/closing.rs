//! Whether the running code is a coroutine or generator that is being closed.

use pyo3::exceptions::PyGeneratorExit;
use pyo3::ffi;
use pyo3::prelude::*;

/// Whether a `GeneratorExit` is being handled.
pub(crate) fn is_closed(py: Python<'_>) -> bool {
    let (mut kind, mut value, mut traceback) = (
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        std::ptr::null_mut(),
    );
    // SAFETY: the thread is attached; the pointers are to places for new references or null.
    unsafe { ffi::PyErr_GetExcInfo(&raw mut kind, &raw mut value, &raw mut traceback) };
    let [kind, _value, _traceback] = [kind, value, traceback].map(|object| {
        // SAFETY: a new reference, or null.
        unsafe { Bound::from_owned_ptr_or_opt(py, object) }
    });
    kind.is_some_and(|kind| kind.is(py.get_type::<PyGeneratorExit>()))
}
