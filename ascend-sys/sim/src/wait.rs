//! Locks, and the pauses of waiting threads, which periodically check if the device is lost.

use crate::clock::now_ns;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum time between two checks of the device.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Locks a mutex, even if a thread panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the time until the next check of the device, or `None` after the timeout.
pub(crate) fn pause(began_ns: u64, timeout_ms: Option<u64>) -> Option<Duration> {
    let Some(timeout_ms) = timeout_ms else {
        return Some(CHECK_INTERVAL);
    };
    let end_ns = began_ns.saturating_add(timeout_ms.saturating_mul(1_000_000));
    let left = end_ns.checked_sub(now_ns()).filter(|left| *left > 0)?;
    Some(CHECK_INTERVAL.min(Duration::from_nanos(left)))
}
