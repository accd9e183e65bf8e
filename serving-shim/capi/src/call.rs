//! What surrounds every call: no panic and no changed `errno` reaches the host, and its thread is not cancelled in it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sa_recorder::host::Uncancelled;

/// The caller's `errno`, given back at the end, and where it lies.
struct Errno(*mut libc::c_int, libc::c_int);

impl Errno {
    #[inline(always)]
    fn keep() -> Errno {
        let place = place();
        // SAFETY: the address is that of the calling thread's errno, valid as long as the thread lives.
        Errno(place, unsafe { *place })
    }
}

impl Drop for Errno {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: as above; a guard stays on its thread.
        unsafe { *self.0 = self.1 };
    }
}

fn place() -> *mut libc::c_int {
    // SAFETY: has no conditions.
    unsafe { libc::__errno_location() }
}

/// Runs `record`; a panic of it gives `fallback`.
#[inline(always)]
pub(crate) fn guarded<R>(fallback: R, record: impl FnOnce() -> R) -> R {
    let _uncancelled = Uncancelled::keep();
    guarded_memory(fallback, record)
}

/// Runs `record` as [`guarded`] does, where the recorder itself keeps the thread from being cancelled, if need be: to forbid that and to permit it again takes two
/// locked instructions.
#[inline(always)]
pub(crate) fn guarded_memory<R>(fallback: R, record: impl FnOnce() -> R) -> R {
    let _errno = Errno::keep();
    // Nothing of ours is half-changed by a panic: what a call changes lies in the recorder, which ends its events by guards.
    catch_unwind(AssertUnwindSafe(record)).unwrap_or(fallback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_gives_the_fallback_and_errno_is_the_callers() {
        drop(Errno(place(), 7));
        let outcome = guarded(5, || {
            drop(Errno(place(), 8));
            panic!("as this test wants")
        });
        assert_eq!((outcome, Errno::keep().1), (5, 7));
        assert_eq!(guarded(5, || 6), 6);
    }
}
