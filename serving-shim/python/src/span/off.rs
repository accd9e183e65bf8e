//! Whether nothing of a level is recorded, asked as cheaply as Python lets us: by functions without an argument.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use sa_recorder::Level;

use crate::call::{self, Call};

fn is_off(call: &Call<'_, '_>, level: Level) -> PyResult<*mut ffi::PyObject> {
    let [] = call.positional([])?;
    let is_off = PyBool::new(call.py, !sa_recorder::__wants(level));
    Ok(is_off.to_owned().into_ptr())
}

fn e2e(call: &Call<'_, '_>) -> PyResult<*mut ffi::PyObject> {
    is_off(call, Level::E2e)
}

fn kernel(call: &Call<'_, '_>) -> PyResult<*mut ffi::PyObject> {
    is_off(call, Level::Kernel)
}

fn verbose(call: &Call<'_, '_>) -> PyResult<*mut ffi::PyObject> {
    is_off(call, Level::Verbose)
}

call::entries! {
    e2e_entry => "is_off_e2e", e2e;
    kernel_entry => "is_off_kernel", kernel;
    verbose_entry => "is_off_verbose", verbose;
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let (e2e, kernel, verbose) = (c"is_off_e2e", c"is_off_kernel", c"is_off_verbose");
    call::add(
        module,
        e2e,
        e2e_entry,
        c"is_off_e2e()\n--\n\nWhether spans of this level are off.",
    )?;
    call::add(
        module,
        kernel,
        kernel_entry,
        c"is_off_kernel()\n--\n\nWhether spans of this level are off.",
    )?;
    call::add(
        module,
        verbose,
        verbose_entry,
        c"is_off_verbose()\n--\n\nWhether spans of this level are off.",
    )
}
