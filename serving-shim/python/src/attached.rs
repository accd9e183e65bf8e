//! A value that attached threads share, under the lock that they hold already.

use std::cell::RefCell;

use pyo3::prelude::*;

/// A value behind the interpreter's lock: to take another one would cost a tenth of a call that records nothing.
pub(crate) struct Attached<T>(RefCell<T>);

// SAFETY: the value and its flag are touched in `with` alone, by an attached thread. The module asks for the interpreter's lock and for one interpreter, so there is one such
// thread at a time; where `act` lets another one in, the flag stands.
unsafe impl<T: Send> Sync for Attached<T> {}

impl<T> Attached<T> {
    pub(crate) const fn new(value: T) -> Attached<T> {
        Attached(RefCell::new(value))
    }

    /// What `act` makes of the value; `None` while another `act` is at it.
    pub(crate) fn with<R>(&self, _py: Python<'_>, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0
            .try_borrow_mut()
            .ok()
            .map(|mut value| act(&mut value))
    }
}
