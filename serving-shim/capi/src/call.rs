//! Guards around every call: no panic and no changed `errno` reaches the host, and the host's thread is not cancelled inside the call.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sa_recorder::host::Uncancelled;

/// Address and value of the caller's `errno`, which is restored on drop.
struct Errno(*mut libc::c_int, libc::c_int);

impl Errno {
    #[inline(always)]
    fn save() -> Errno {
        let address = errno_address();
        // SAFETY: the calling thread's errno is at this address for as long as the thread lives.
        Errno(address, unsafe { *address })
    }
}

impl Drop for Errno {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: as above; the guard stays on its thread.
        unsafe { *self.0 = self.1 };
    }
}

fn errno_address() -> *mut libc::c_int {
    // SAFETY: the call has no preconditions.
    unsafe { libc::__errno_location() }
}

/// Runs `record`, the body of an exported function, and returns its result, or `fallback` if it panics.
#[inline(always)]
pub(crate) fn guarded<R>(fallback: R, record: impl FnOnce() -> R) -> R {
    let _uncancelled = Uncancelled::begin();
    guarded_memory(fallback, record)
}

/// Runs `record`, the body of an exported function, like [`guarded`], but does not disable thread cancellation. The recorder does that itself where it must.
/// Disabling and enabling it costs two locked instructions.
#[inline(always)]
pub(crate) fn guarded_memory<R>(fallback: R, record: impl FnOnce() -> R) -> R {
    let _errno = Errno::save();
    // A panic leaves nothing half-changed: a call only changes state in the recorder, which completes its events with guards.
    catch_unwind(AssertUnwindSafe(record)).unwrap_or(fallback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_returns_the_fallback_and_keeps_the_callers_errno() {
        drop(Errno(errno_address(), 7));
        let outcome = guarded(5, || {
            drop(Errno(errno_address(), 8));
            panic!("expected by this test")
        });
        assert_eq!((outcome, Errno::save().1), (5, 7));
        assert_eq!(guarded(5, || 6), 6);
    }
}
