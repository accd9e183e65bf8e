//! A recording that is about to begin in place of another one.

use std::sync::atomic::{AtomicPtr, Ordering};

use crate::run::config::Config;

/// What the recording that is about to begin was asked for; null while none is.
static PENDING: AtomicPtr<Config> = AtomicPtr::new(std::ptr::null_mut());

/// What is asked for, for the child of a fork that is made before it is there.
pub(crate) struct Pending;

impl Pending {
    pub(crate) fn set(config: Config) -> Pending {
        PENDING.store(Box::into_raw(Box::new(config)), Ordering::Release);
        Pending
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let config = PENDING.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !config.is_null() {
            // SAFETY: it came from `Box::into_raw`, and who takes it out of its place owns it.
            drop(unsafe { Box::from_raw(config) });
        }
    }
}

/// What the recording that is about to begin was asked for. For who starts the recorder: only the child of a fork finds anything,
/// for in the process that begins it nobody else can start.
pub(crate) fn pending() -> Option<Config> {
    // SAFETY: only who starts the recorder frees it, and that is the calling thread.
    unsafe { PENDING.load(Ordering::Acquire).as_ref() }.cloned()
}

/// Forgets it: the child of a fork has begun that recording. Until then its own children must find it.
pub(crate) fn forget_pending() {
    drop(Pending);
}

/// Whether a recording is about to begin. Async-signal-safe.
pub(crate) fn is_under_way() -> bool {
    !PENDING.load(Ordering::Acquire).is_null()
}
