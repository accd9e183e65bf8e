//! What the calling thread is in the middle of, and what of it must look untouched: `errno`, and everything after a panic of ours.

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};

use sa_recorder::host::Uncancelled;

thread_local! {
    // Without destructors: nothing is registered or allocated when a thread first calls, or calls again while it ends.
    /// In our own code: a vendor function that it calls is the host's business in no way.
    static OURS: Cell<bool> = const { Cell::new(false) };
    /// Where on the stack the frame of the recorded call ends that surrounds this one; 0 for none.
    static OUTERMOST: Cell<usize> = const { Cell::new(0) };
}

/// A panic of ours has ended recording here: its state is not to be trusted any more.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// Whether the call comes from the host or a library of its, not from our own code.
#[inline(always)]
pub(crate) fn is_outside() -> bool {
    !OURS.get()
}

/// Whether the call whose frame is at this address is not a part of one that is being recorded, and nothing of ours has failed.
///
/// A program may leave a call by `siglongjmp`, and then nothing says that it has ended; but what is inside a call lies below it on the stack.
#[inline(always)]
pub(crate) fn is_outermost(frame: usize) -> bool {
    const NEAR_BYTES: usize = 64; // a call at the very end of the frame shares these with `Inside::new`
    let outermost = OUTERMOST.get();
    (outermost == 0 || frame > outermost.saturating_add(NEAR_BYTES)) && is_whole()
}

/// An address in the frame of the function that asks.
#[inline(always)]
pub(crate) fn frame() -> usize {
    let here = 0u8;
    (&raw const here).addr()
}

/// Whether the call comes from outside and nothing of ours has failed.
#[inline(always)]
pub(crate) fn is_whole() -> bool {
    is_outside() && !BROKEN.load(Ordering::Relaxed)
}

/// Makes the calls inside this one a part of it, until it is dropped: also when an exception leaves the call.
#[derive(Debug)]
pub(crate) struct Inside(());

impl Inside {
    /// Enters the outermost call. A function of its own, so that its frame lies just below the caller's.
    #[inline(never)]
    pub(crate) fn new() -> Inside {
        OUTERMOST.set(frame());
        Inside(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        OUTERMOST.set(0);
    }
}

/// Puts `errno` back when it is dropped.
#[derive(Debug)]
pub(crate) struct Errno(c_int);

impl Errno {
    /// Remembers the thread's `errno`.
    pub(crate) fn keep() -> Errno {
        // SAFETY: this thread's errno is always there to read.
        Errno(unsafe { *errno() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: this thread's errno is always there to write.
        unsafe { *errno() = self.0 };
    }
}

fn errno() -> *mut c_int {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::__errno_location() }
}

/// Runs a piece of our own work so that the host notices nothing of it; `None` if it panicked, and then nothing is recorded any more.
pub(crate) fn unnoticed<R>(work: impl FnOnce() -> R) -> Option<R> {
    let _uncancelled = Uncancelled::keep(); // around the others: to permit cancellation again is the last thing done
    let _errno = Errno::keep();
    silence_panics();
    let before = OURS.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    OURS.set(before);
    match result {
        Ok(result) => Some(result),
        Err(_) => {
            BROKEN.store(true, Ordering::Relaxed);
            None
        }
    }
}

/// A panic goes into the trace instead of to the host's stderr. The hook is that of this library's own copy of std.
fn silence_panics() {
    // No `Once`: a fork in the middle of one would leave the child waiting for ever.
    static DONE: AtomicBool = AtomicBool::new(cfg!(test)); // a failing test says why
    if DONE.load(Ordering::Relaxed) || DONE.swap(true, Ordering::Relaxed) {
        return;
    }
    panic::set_hook(Box::new(|panic| {
        let message = panic.to_string();
        let tell = || sa_recorder::instant!("sa-profile", "sa_preload_error", message = message);
        let _ = panic::catch_unwind(tell); // nothing is left to tell it by
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Call, tell_after, tell_before};
    #[test]
    fn a_panic_ends_in_none_and_ends_recording_but_not_what_is_told() {
        assert!(is_outermost(1));
        assert_eq!(unnoticed(|| 7), Some(7));
        assert!(is_outermost(1));
        let panicked = unnoticed(|| panic!("on purpose"));
        assert_eq!(panicked, None::<()>);
        assert!(is_outside() && !is_outermost(1));
        // Calls that report the end of a stream are still observed.
        let mut told = 0;
        let call = || Call {
            name: "any",
            real: Some(|| 0),
            missing: 1,
        };
        tell_before(call(), || told += 1);
        tell_after(call(), || told += 1);
        BROKEN.store(false, Ordering::Relaxed);
        assert_eq!(told, 2);
    }
}
