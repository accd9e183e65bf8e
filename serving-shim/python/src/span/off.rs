//! Functions that say whether a level is off. They have no argument, because a call without one is the cheapest that Python has.

use pyo3::prelude::*;
use sa_recorder::Level;

/// Returns true if spans of this level are off.
#[pyfunction]
fn is_off_e2e() -> bool {
    !sa_recorder::__wants(Level::E2e)
}

/// Returns true if spans of this level are off.
#[pyfunction]
fn is_off_kernel() -> bool {
    !sa_recorder::__wants(Level::Kernel)
}

/// Returns true if spans of this level are off.
#[pyfunction]
fn is_off_verbose() -> bool {
    !sa_recorder::__wants(Level::Verbose)
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_off_e2e, module)?)?;
    module.add_function(wrap_pyfunction!(is_off_kernel, module)?)?;
    module.add_function(wrap_pyfunction!(is_off_verbose, module)?)
}
