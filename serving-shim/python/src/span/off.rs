//! Functions that return true if a level is off. They take no argument, because that makes the cheapest call in Python.

use pyo3::prelude::*;
use sa_recorder::Level;

/// Returns true if spans of level `e2e` are not recorded.
#[pyfunction]
pub(crate) fn is_off_e2e() -> bool {
    !sa_recorder::__wants(Level::E2e)
}

/// Returns true if spans of level `kernel` are not recorded.
#[pyfunction]
pub(crate) fn is_off_kernel() -> bool {
    !sa_recorder::__wants(Level::Kernel)
}

/// Returns true if spans of level `verbose` are not recorded.
#[pyfunction]
pub(crate) fn is_off_verbose() -> bool {
    !sa_recorder::__wants(Level::Verbose)
}
