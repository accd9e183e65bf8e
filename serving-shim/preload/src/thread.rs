//! The state of the calling thread: whether it runs our own code or a recorded call, and what the host must not notice of our work (`errno`, panics).

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};

use sa_recorder::host::Uncancelled;

thread_local! {
    // Without destructors, so that nothing is registered or allocated at a thread's first call, or at a call while the thread ends.
    /// True while our own code runs. The vendor functions that it calls are not calls of the host.
    static OURS: Cell<bool> = const { Cell::new(false) };
    /// Address at which the frame of the surrounding recorded call ends, or 0.
    static OUTERMOST: Cell<usize> = const { Cell::new(0) };
}

/// True after a panic in our code. Its state may be inconsistent, so recording has ended.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// Returns true if an intercepted call comes from the host or one of its libraries, not from our own code.
#[inline(always)]
pub(crate) fn is_outside() -> bool {
    !OURS.get()
}

/// Returns true if an intercepted call is not inside a recorded call, and our code has not failed. `frame` is the address of the call's stack frame.
///
/// A program may leave a call by `siglongjmp`, and then its end is not seen. Calls inside a call are recognised by their frames, which are below it on the stack.
#[inline(always)]
pub(crate) fn is_outermost(frame: usize) -> bool {
    const NEAR_BYTES: usize = 64; // a call at the end of the frame may share these bytes with `Inside::new`
    let outermost = OUTERMOST.get();
    (outermost == 0 || frame > outermost.saturating_add(NEAR_BYTES)) && is_whole()
}

/// Returns an address in the stack frame of the caller, by which nested calls are recognised.
#[inline(always)]
pub(crate) fn frame() -> usize {
    let here = 0u8;
    (&raw const here).addr()
}

/// Returns true if an intercepted call comes from outside our own code, and our code has not failed.
#[inline(always)]
pub(crate) fn is_whole() -> bool {
    is_outside() && !BROKEN.load(Ordering::Relaxed)
}

/// Guard that marks all calls on this thread as parts of the current one until it is dropped, also by an exception that leaves the call.
#[derive(Debug)]
pub(crate) struct Inside(());

impl Inside {
    /// Marks all further calls on this thread as parts of the current recorded call. Not inlined, so that its frame is just below the caller's.
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

/// Guard that restores `errno` when it is dropped.
#[derive(Debug)]
pub(crate) struct Errno(c_int);

impl Errno {
    /// Stores the thread's `errno`, which is restored when the guard is dropped.
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

/// Runs our own work so that the host does not notice it: `errno` is restored and panics are caught. Returns `None` if the work panicked; nothing is recorded
/// after that.
pub(crate) fn unnoticed<R>(work: impl FnOnce() -> R) -> Option<R> {
    let _uncancelled = Uncancelled::begin(); // first, so that it is dropped last and cancellation is permitted again at the very end
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

/// Makes panics of our own code appear in the trace instead of on the host's stderr. The panic hook belongs to this library's own copy of std.
fn silence_panics() {
    // Not a `Once`: after a fork in the middle of it, the child would wait forever.
    static DONE: AtomicBool = AtomicBool::new(cfg!(test)); // tests print their panics
    if DONE.load(Ordering::Relaxed) || DONE.swap(true, Ordering::Relaxed) {
        return;
    }
    panic::set_hook(Box::new(|panic| {
        let message = panic.to_string();
        let record = || sa_recorder::instant!("sa-profile", "sa_preload_error", message = message);
        let _ = panic::catch_unwind(record); // if this fails too, there is no way left to report it
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Call, observe_after, observe_before};
    #[test]
    fn a_panic_returns_none_and_ends_recording_but_not_observing() {
        assert!(is_outermost(1));
        assert_eq!(unnoticed(|| 7), Some(7));
        assert!(is_outermost(1));
        let panicked = unnoticed(|| panic!("on purpose"));
        assert_eq!(panicked, None::<()>);
        assert!(is_outside() && !is_outermost(1));
        // Calls that destroy a stream are still observed.
        let mut observed = 0;
        let call = || Call {
            name: "any",
            real: Some(|| 0),
            missing: 1,
        };
        observe_before(call(), || observed += 1);
        observe_after(call(), || observed += 1);
        BROKEN.store(false, Ordering::Relaxed);
        assert_eq!(observed, 2);
    }
}
