//! Integer arguments, such as times and sizes.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// An integer type and its range.
pub(crate) trait Bounded: TryFrom<i128> {
    const MINIMUM: i128;
    const MAXIMUM: i128;
}

macro_rules! bounded {
    ($($kind:ty)*) => {$(
        impl Bounded for $kind {
            const MINIMUM: i128 = <$kind>::MIN as i128;
            const MAXIMUM: i128 = <$kind>::MAX as i128;
        }
    )*};
}
bounded!(u32 u64 i64 usize);

/// Converts a Python int to the Rust type `T`. `what` names the argument in the error message. PyO3 would name it in an exception note, but Python 3.10 does
/// not support notes.
pub(crate) fn parse<T: Bounded>(what: &str, number: &Bound<'_, PyAny>) -> PyResult<T> {
    let found = number.extract::<i128>().ok();
    found
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| out_of_range::<T>(what, number))
}

/// Converts an optional Python int to the Rust type `T`, or to `None` if the argument was not given. `what` names the argument in the error message.
pub(crate) fn parse_optional<T: Bounded>(
    what: &str,
    number: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<T>> {
    number.map(|number| parse(what, number)).transpose()
}

#[cold]
fn out_of_range<T: Bounded>(what: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let (minimum, maximum) = (T::MINIMUM, T::MAXIMUM);
    let found = found.repr().map(|found| found.to_string());
    PyTypeError::new_err(format!(
        "{what}: expected an int from {minimum} to {maximum}, found {}",
        found.unwrap_or_default()
    ))
}
