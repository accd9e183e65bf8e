//! What hooks into an engine ask of its objects in each step, without code of Python for each request or token.

mod ids;
mod outputs;
mod scheduled;
pub(crate) mod step;

use pyo3::prelude::*;

/// Adds what these files offer to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    ids::add(module)?;
    outputs::add(module)?;
    step::add(module)
}
