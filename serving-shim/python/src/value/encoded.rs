//! [`EncodedValue`]: a value that is JSON text already.

use pyo3::prelude::*;

/// The JSON text of a value, which is written as it is where the value is an arg of an event. Classes that extend this one keep what it was made of.
#[pyclass(frozen, subclass, module = "sa_profile")]
pub(crate) struct EncodedValue(pub(crate) Vec<u8>);
