//! What surrounds every call: no panic and no changed `errno` reaches the host, and its thread is not cancelled in it.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The caller's `errno`, given back at the end.
struct Errno(libc::c_int);

impl Errno {
    fn keep() -> Errno {
        // SAFETY: the address is that of the calling thread's errno, valid as long as the thread lives.
        Errno(unsafe { *place() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *place() = self.0 };
    }
}

fn place() -> *mut libc::c_int {
    // SAFETY: has no conditions.
    unsafe { libc::__errno_location() }
}

/// Keeps the thread from being cancelled until it is dropped: recording comes to cancellation points, and nothing may unwind from there. Where cancellation is
/// asked for meanwhile, it takes effect at the caller's next one.
struct Uncancelled(libc::c_int);

impl Uncancelled {
    fn keep() -> Uncancelled {
        const DISABLE: libc::c_int = 1; // glibc's PTHREAD_CANCEL_DISABLE
        let mut before = 0;
        // SAFETY: a state that the C library knows, and room for the one before.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Uncancelled(before)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        let mut ours = 0;
        // SAFETY: the state that the C library gave, and room for our own.
        unsafe { pthread_setcancelstate(self.0, &raw mut ours) };
    }
}

unsafe extern "C" {
    // Not in the `libc` crate. A thread whose type is asynchronous may call nothing of ours, so that this never unwinds.
    fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
}

/// Runs `record`; a panic of it gives `fallback`.
#[inline(always)]
pub(crate) fn guarded<R>(fallback: R, record: impl FnOnce() -> R) -> R {
    let _uncancelled = Uncancelled::keep();
    let _errno = Errno::keep();
    // Nothing of ours is half-changed by a panic: what a call changes lies in the recorder, which ends its events by guards.
    catch_unwind(AssertUnwindSafe(record)).unwrap_or(fallback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_gives_the_fallback_and_errno_is_the_callers() {
        Errno(7).drop_now();
        let outcome = guarded(5, || {
            Errno(8).drop_now();
            panic!("as this test wants")
        });
        assert_eq!((outcome, Errno::keep().taken()), (5, 7));
        assert_eq!(guarded(5, || 6), 6);
    }

    impl Errno {
        /// Sets errno to this.
        fn drop_now(self) {}

        /// What was kept.
        fn taken(&self) -> libc::c_int {
            self.0
        }
    }
}
