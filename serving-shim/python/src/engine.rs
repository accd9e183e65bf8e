//! What hooks into an engine ask of its objects in each step, without code of Python for each request or token.

pub(crate) mod front;
pub(crate) mod http;
mod ids;
mod outputs;
mod scheduled;
mod stamps;
pub(crate) mod step;

use pyo3::prelude::*;

/// Adds what these files offer to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    front::add(module)?;
    http::add(module)?;
    ids::add(module)?;
    stamps::add(module)?;
    outputs::add(module)?;
    step::add(module)
}
