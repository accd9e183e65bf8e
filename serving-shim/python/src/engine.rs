//! What hooks into an engine ask of its objects in each step, without code of Python for each request or token.

pub(crate) mod ids;
mod outputs;
mod step;

use pyo3::prelude::*;

/// Adds what these files offer to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    ids::add(module)?;
    outputs::add(module)?;
    step::add(module)
}
