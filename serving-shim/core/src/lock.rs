//! Locks that still work after a thread panicked while it held them, and attempts to lock with a time limit.

use sa_recorder::{host, now_ns};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Number of attempts to lock before the thread sleeps between two attempts.
const QUICK_ATTEMPTS: u32 = 50;
/// Length of that sleep.
const NAP: Duration = Duration::from_micros(200);

/// Locks a mutex, even if a thread panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex if it becomes free before the time `end_ns`, on the clock of [`now_ns`]. Otherwise returns `None`.
pub(crate) fn lock_until<T>(mutex: &Mutex<T>, end_ns: u64) -> Option<MutexGuard<'_, T>> {
    let mut attempts = 0;
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if now_ns() > end_ns => return None,
            Err(TryLockError::WouldBlock) if attempts < QUICK_ATTEMPTS => std::thread::yield_now(),
            Err(TryLockError::WouldBlock) => host::sleep(NAP),
        }
        attempts += 1;
    }
}
