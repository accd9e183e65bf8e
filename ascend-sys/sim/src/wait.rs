//! Locks, and the pauses of waiting threads, which look from time to time if the device is lost.

use crate::clock::now_ns;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest pause between two looks at the device.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Locks, even if a thread panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns how long to wait before the next look, if the time is not over.
pub(crate) fn nap(began_ns: u64, timeout_ms: Option<u64>) -> Option<Duration> {
    let Some(timeout_ms) = timeout_ms else {
        return Some(LOOK);
    };
    let end_ns = began_ns.saturating_add(timeout_ms.saturating_mul(1_000_000));
    let left = end_ns.checked_sub(now_ns()).filter(|left| *left > 0)?;
    Some(LOOK.min(Duration::from_nanos(left)))
}
