//! A lock for sections of a few nanoseconds. A plain store frees it, while a `Mutex` needs a second
//! locked instruction. One locked instruction costs more than most of the work in such a section.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::clock;
use crate::sys::wait::{self, PATIENCE_NS};

/// Number of times that a thread spins before it lets others run.
const SPINS: u32 = 64;

/// A value that one thread at a time uses. It has a pair of cache lines to itself, because
/// processors fetch lines in pairs and other threads read its neighbours.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct SpinLock<T> {
    is_locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only accessible through a guard, and there is at most one guard at a time.
unsafe impl<T: Send> Sync for SpinLock<T> {}

/// The right to use the value. Threads may share a guard if they may share the value.
pub(crate) struct Guard<'a, T>(&'a SpinLock<T>, PhantomData<&'a T>);

impl<T> SpinLock<T> {
    /// Takes the lock, waiting at most [`PATIENCE_NS`] for it. Returns `None` if it is not free by
    /// then.
    #[inline(always)]
    pub(crate) fn lock(&self) -> Option<Guard<'_, T>> {
        self.try_lock().or_else(|| self.lock_slow())
    }

    /// Takes the lock, or returns `None` if another thread has it.
    #[inline(always)]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        let was_locked = self.is_locked.swap(true, Ordering::Acquire);
        (!was_locked).then(|| Guard(self, PhantomData))
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) -> Option<Guard<'_, T>> {
        for _ in 0..SPINS {
            if let Some(guard) = self.try_lock_if_free() {
                return Some(guard);
            }
            std::hint::spin_loop();
        }
        wait::until(clock::now_ns() + PATIENCE_NS, || self.try_lock_if_free())
    }

    /// Takes the lock if a plain read shows that it is free. Unlike an attempt to take it, a read
    /// does not pull the cache line away from the lock's owner.
    fn try_lock_if_free(&self) -> Option<Guard<'_, T>> {
        let is_free = !self.is_locked.load(Ordering::Relaxed);
        is_free.then(|| self.try_lock()).flatten()
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: there is one guard at a time.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one guard at a time, and it is borrowed mutably.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.is_locked.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Marks a type as not shareable between threads, unless `Shared` marks it as shareable.
    trait NotShared {
        const IS: bool = false;
    }

    struct Shared<T>(PhantomData<T>);

    impl<T> NotShared for Shared<T> {}

    impl<T: Sync> Shared<T> {
        const IS: bool = true;
    }

    #[test]
    fn a_guard_is_shared_by_threads_only_where_its_value_may_be() {
        const { assert!(Shared::<Guard<'_, u8>>::IS) };
        const { assert!(!Shared::<Guard<'_, Cell<u8>>>::IS) };
        const { assert!(Shared::<SpinLock<Cell<u8>>>::IS) };
    }

    #[test]
    fn one_thread_at_a_time_uses_the_value() {
        const ROUNDS: u64 = 20_000;
        let sum = SpinLock::<[u64; 2]>::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let mut sum = sum.lock().unwrap();
                        assert_eq!(sum[0], sum[1]);
                        sum[0] += 1;
                        sum[1] += 1;
                    }
                });
            }
        });
        assert_eq!(*sum.lock().unwrap(), [4 * ROUNDS; 2]);
    }

    #[test]
    fn waiting_for_a_lock_ends_after_the_limit() {
        let lock = SpinLock::<u32>::default();
        let held = lock.lock().unwrap();
        assert!(lock.try_lock().is_none());
        let start_ns = clock::now_ns();
        assert!(lock.lock().is_none());
        assert!(clock::now_ns() >= start_ns + PATIENCE_NS);
        drop(held);
        assert!(lock.lock().is_some());
    }
}
