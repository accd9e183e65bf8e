//! A value that attached threads share, under the lock that they hold already.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

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

/// Most calls after which what they dropped is given back.
const CALLS: u32 = 1024;

/// Gives back from time to time what a call dropped as a `Py`, which may run code. pyo3 does not know of threads that the interpreter attached: it keeps such references until
/// somebody attaches by it, which nothing does in a program whose threads do nothing but record.
pub(crate) fn give_back_dropped(_py: Python<'_>) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // Two steps, not one: under the interpreter's lock nobody comes between, and one step for all processors would cost five times as much.
    let count = COUNT.load(Ordering::Relaxed).wrapping_add(1);
    COUNT.store(count, Ordering::Relaxed);
    if count.is_multiple_of(CALLS) {
        attach();
    }
}

/// Where the interpreter ends, nobody can attach any more; finalisers still record.
#[cold]
fn attach() {
    let _ = Python::try_attach(|_| ());
}
