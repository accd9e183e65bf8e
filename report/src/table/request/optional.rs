//! Numbers that may be missing, in no more room than the numbers themselves: a run may have millions of requests.

use std::fmt;

/// A number, if it is known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Optional<T>(T);

/// A type of numbers with one value that means "missing".
pub(crate) trait Number: Copy + PartialEq {
    /// The value of a missing number.
    const MISSING: Self;
}

impl Number for i64 {
    const MISSING: i64 = i64::MIN;
}

impl Number for u64 {
    const MISSING: u64 = u64::MAX;
}

impl Number for u32 {
    const MISSING: u32 = u32::MAX;
}

impl<T: Number> Optional<T> {
    pub(crate) fn get(self) -> Option<T> {
        (self.0 != T::MISSING).then_some(self.0)
    }
}

impl<T: Number> From<Option<T>> for Optional<T> {
    fn from(number: Option<T>) -> Optional<T> {
        Optional(number.unwrap_or(T::MISSING))
    }
}

impl<T: Number + fmt::Debug> fmt::Debug for Optional<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
