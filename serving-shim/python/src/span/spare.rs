//! Spans of which a block had the last reference, as of most that are made for one block: their objects are used again. To make one and drop it costs a fifth of an event.

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering;

use pyo3::prelude::*;

use crate::attached::Attached;
use crate::lane::Missed;
use crate::names::is_unheld;
use crate::span::Span;
use crate::span::facts::Facts;

/// What an object holds, which is replaced only while nobody has the object.
pub(super) struct Settled<T>(UnsafeCell<T>);

// SAFETY: who reads it has the object, and meanwhile nobody replaces it.
unsafe impl<T: Sync> Sync for Settled<T> {}

impl<T> Settled<T> {
    pub(super) fn get(&self) -> &T {
        // SAFETY: who calls this has the object, so nobody replaces the value.
        unsafe { &*self.0.get() }
    }

    /// # Safety
    ///
    /// Nobody but the caller has the object, and the caller no reference to the value.
    unsafe fn replace(&self, value: T) -> T {
        // SAFETY: as the caller says.
        let place = unsafe { &mut *self.0.get() };
        std::mem::replace(place, value)
    }
}

/// Most that are kept: few blocks of a process are open at one time.
const MOST: usize = 32;

static SPARE: Attached<Vec<Py<Span>>> = Attached::new(Vec::new());

/// A span that says this.
pub(super) fn make(py: Python<'_>, facts: Facts) -> PyResult<Bound<'_, Span>> {
    let Some(span) = SPARE.with(py, Vec::pop).flatten() else {
        let facts = Settled(UnsafeCell::new(facts));
        return Bound::new(
            py,
            Span {
                facts,
                missed: Missed::new(0),
            },
        );
    };
    let span = span.into_bound(py);
    // SAFETY: the reference was the only one.
    let none = unsafe { span.get().facts.replace(facts) };
    none.give_back(py);
    Ok(span)
}

/// Gives a block's reference to its span back.
pub(super) fn let_go(span: Bound<'_, Span>) {
    let py = span.py();
    if !is_unheld(span.as_unbound()) {
        return;
    }
    span.get().missed.store(0, Ordering::Relaxed);
    // SAFETY: the reference is the only one.
    let facts = unsafe { span.get().facts.replace(Facts::none(py)) };
    SPARE.with(py, |spare| {
        if spare.len() < MOST {
            spare.push(span.unbind());
        }
    });
    facts.give_back(py); // after the look, and last: it may run code
}
