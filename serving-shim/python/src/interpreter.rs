//! What the interpreter does without a call of ours: imports, garbage collections, and what its threads run.

mod garbage;
mod imports;
pub(crate) mod sampling;

use pyo3::ffi;
use pyo3::prelude::*;

/// Whether the caller runs in the first interpreter of its process: what is here is for the whole process, and ends with that one.
#[pyfunction]
fn is_main_interpreter(_py: Python<'_>) -> bool {
    // SAFETY: the thread is attached, as `_py` shows.
    let interpreter = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: the interpreter of the calling thread lives.
    let id = unsafe { ffi::PyInterpreterState_GetID(interpreter) };
    id == 0
}

/// Adds what these files offer to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_main_interpreter, module)?)?;
    garbage::add(module)?;
    imports::add(module)?;
    sampling::add(module)
}
