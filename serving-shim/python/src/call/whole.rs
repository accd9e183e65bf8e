//! Integer arguments, such as times and sizes.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// An integer type and its range.
pub(crate) trait Bounded: TryFrom<i128> {
    const LEAST: i128;
    const MOST: i128;
}

macro_rules! bounded {
    ($($kind:ty)*) => {$(
        impl Bounded for $kind {
            const LEAST: i128 = <$kind>::MIN as i128;
            const MOST: i128 = <$kind>::MAX as i128;
        }
    )*};
}
bounded!(u32 u64 i64 usize);

/// Converts an integer argument. PyO3 would name the argument in an exception note, but Python 3.10 does not support notes.
pub(crate) fn of<T: Bounded>(what: &str, number: &Bound<'_, PyAny>) -> PyResult<T> {
    let found = number.extract::<i128>().ok();
    found
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| refused::<T>(what, number))
}

/// Converts an optional integer argument.
pub(crate) fn optional<T: Bounded>(
    what: &str,
    number: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<T>> {
    number.map(|number| of(what, number)).transpose()
}

#[cold]
fn refused<T: Bounded>(what: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let (least, most) = (T::LEAST, T::MOST);
    let found = found.repr().map(|found| found.to_string());
    PyTypeError::new_err(format!(
        "{what}: expected an int from {least} to {most}, found {}",
        found.unwrap_or_default()
    ))
}
