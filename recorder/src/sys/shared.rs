//! A value with two or more owners. The standard library's `Arc` ends the process if there is no
//! memory for it.

use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use super::memory::try_box;

/// One owner's reference to a value on the heap. The last owner drops the value.
#[derive(Debug)]
pub(crate) struct Shared<T>(NonNull<Held<T>>);

#[derive(Debug)]
struct Held<T> {
    owners: AtomicU32,
    value: T,
}

// SAFETY: owners only have `&T`, and any of them may drop the value.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Puts a value on the heap and returns the first owner's reference.
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    pub(crate) fn new(value: T) -> io::Result<Shared<T>> {
        let owners = AtomicU32::new(1);
        let held = try_box(Held { owners, value })?;
        Ok(Shared(NonNull::from(Box::leak(held))))
    }

    fn held(&self) -> &Held<T> {
        // SAFETY: the value lives as long as it has an owner.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        self.held().owners.fetch_add(1, Ordering::Relaxed);
        Shared(self.0)
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Shared<T>) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.held().value
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        if self.held().owners.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire); // orders the other owners' accesses before the drop
            // SAFETY: the pointer came from a box, and this was the last owner.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_last_owner_drops_it() {
        let inner = Arc::new(7);
        let one = Shared::new(inner.clone()).unwrap();
        let other = one.clone();
        let thread = std::thread::spawn(move || **other);
        assert_eq!(thread.join().unwrap(), 7);
        assert_eq!(Arc::strong_count(&inner), 2);
        drop(one);
        assert_eq!(Arc::strong_count(&inner), 1);
    }
}
