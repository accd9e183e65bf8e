//! A value that attached threads share, protected by the GIL.

use std::cell::RefCell;

use pyo3::prelude::*;

/// A value protected by the GIL, which the caller holds anyway. A further lock would add a tenth to the cost of a call that records nothing.
pub(crate) struct Attached<T>(RefCell<T>);

// SAFETY: the value and the flag are only accessed in `with`, by a thread attached to the interpreter. The module requires the GIL and supports one interpreter, so only one
// thread is attached at a time. If `act` releases the GIL, the flag is still set.
unsafe impl<T: Send> Sync for Attached<T> {}

impl<T> Attached<T> {
    pub(crate) const fn new(value: T) -> Attached<T> {
        Attached(RefCell::new(value))
    }

    /// Calls `act` with the protected value and returns its result. Returns `None` if the value is in use: another call of `with` has not finished.
    pub(crate) fn with<R>(&self, _py: Python<'_>, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0
            .try_borrow_mut()
            .ok()
            .map(|mut value| act(&mut value))
    }
}
