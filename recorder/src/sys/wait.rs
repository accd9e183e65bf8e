//! Locks with a deadline. The thread that holds one may hang in a file system, or may be this very
//! thread, interrupted by a signal handler.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use crate::sys::clock;
use crate::sys::sleep::sleep;

/// Time that a thread waits for another one that is writing: as long as one of its own writes may
/// take.
pub(crate) const PATIENCE_NS: u64 = 1_000_000_000;

/// Part of that time that the thread stays awake. Most writes are finished by then, and a sleep of
/// a host's thread takes 50 µs longer than requested.
const AWAKE_NS: u64 = 200_000;

/// Takes a lock, or returns `None` if another thread has it. A lock that a panic has poisoned
/// counts as free.
pub(crate) fn try_lock<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match lock.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Repeats `attempt` until it returns a value or `end_ns` is reached. Returns that value, or `None`
/// if every attempt failed. Makes at least one attempt.
pub(crate) fn until<T>(end_ns: u64, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let start_ns = clock::now_ns();
    loop {
        match attempt() {
            None if clock::now_ns() < end_ns => pause(start_ns),
            outcome => return outcome,
        }
    }
}

/// Waits until `is_true` returns true. Returns false if it does not by `end_ns`.
pub(crate) fn until_true(end_ns: u64, is_true: impl Fn() -> bool) -> bool {
    until(end_ns, || is_true().then_some(())).is_some()
}

/// Takes a lock, waiting for it until `end_ns`. Returns `None` if it is not free by then.
pub(crate) fn lock_until<T>(lock: &Mutex<T>, end_ns: u64) -> Option<MutexGuard<'_, T>> {
    until(end_ns, || try_lock(lock))
}

/// Takes a lock, waiting at most [`PATIENCE_NS`] for it. Returns `None` if it is not free by then.
pub(crate) fn lock<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    try_lock(lock).or_else(|| lock_until(lock, clock::now_ns() + PATIENCE_NS))
}

/// Lets other threads run for a moment, between two attempts of a wait that began at `start_ns`.
/// Yields at first, and sleeps 20 µs after a while.
pub(crate) fn pause(start_ns: u64) {
    if clock::now_ns() < start_ns + AWAKE_NS {
        std::thread::yield_now();
    } else {
        sleep(Duration::from_micros(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_lock_ends_after_the_limit() {
        let lock = Mutex::new(7);
        let held = lock.lock().unwrap();
        let start_ns = clock::now_ns();
        assert!(try_lock(&lock).is_none());
        assert!(lock_until(&lock, start_ns + 2_000_000).is_none());
        assert!(clock::now_ns() >= start_ns + 2_000_000);
        drop(held);
        assert_eq!(lock_until(&lock, 0).as_deref(), Some(&7));
    }
}
