//! What the interpreter does without a call of ours: imports, garbage collections, and what its threads run.

mod calls;
mod garbage;
mod imports;
mod lives;
pub(crate) mod sampling;
mod several;

use pyo3::prelude::*;

/// Adds what these files offer to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    calls::add(module)?;
    garbage::add(module)?;
    imports::add(module)?;
    lives::add(module)?;
    sampling::add(module)?;
    several::add(module)
}
