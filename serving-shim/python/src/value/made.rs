//! [`Made`]: a value whose text was made before.

use pyo3::prelude::*;

/// The text of a value, which stands for it as an arg of events. What it is of stands in the classes that extend this one.
#[pyclass(frozen, subclass, module = "sa_profile")]
pub(crate) struct Made(pub(crate) Vec<u8>);
