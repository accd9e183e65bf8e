//! The right to start the recorder or a new recording, which one thread has at a time, and the
//! recording that is about to replace another one.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::run::config::Config;
use crate::sys::{self, clock, wait};

/// `pid << 32 | tid`, or 0 if no thread has the right. The pid of another process is the parent's,
/// copied by a fork.
static HOLDER: AtomicU64 = AtomicU64::new(0);

/// The right to start a recording.
pub(crate) struct StartLock;

impl StartLock {
    /// Acquires the right to start the recorder, even if a fork interrupted the thread that had it.
    /// Returns `None` if another thread keeps it for longer than `patience_ns`, because that thread
    /// may hang in a file system. Also returns `None` if this very thread has it, because something
    /// is recorded while the recorder starts, for example by an allocator hook.
    pub(crate) fn acquire(patience_ns: u64) -> Option<StartLock> {
        let me = u64::from(std::process::id()) << 32 | u64::from(sys::thread::tid());
        if HOLDER.load(Ordering::Acquire) == me {
            return None;
        }
        let is_free = |other: u64| other == 0 || other >> 32 != me >> 32; // or left by a fork
        let acquire = |other: u64| is_free(other).then_some(me);
        let try_acquire = || {
            let acquired = HOLDER.fetch_update(Ordering::AcqRel, Ordering::Acquire, acquire);
            acquired.is_ok()
        };
        let end_ns = clock::now_ns() + patience_ns;
        wait::until_true(end_ns, try_acquire).then(|| StartLock) // not `then_some`: dropping an unused right would release that of the other thread
    }
}

impl Drop for StartLock {
    fn drop(&mut self) {
        HOLDER.store(0, Ordering::Release);
    }
}

/// Configuration of the recording that is about to begin, or null.
static PENDING: AtomicPtr<Config> = AtomicPtr::new(std::ptr::null_mut());

/// Keeps the configuration of a recording that is about to begin, so that a child that is forked
/// before then finds it.
pub(crate) struct PendingConfig;

impl PendingConfig {
    pub(crate) fn set(config: Config) -> PendingConfig {
        PENDING.store(Box::into_raw(Box::new(config)), Ordering::Release);
        PendingConfig
    }
}

impl Drop for PendingConfig {
    fn drop(&mut self) {
        let config = PENDING.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !config.is_null() {
            // SAFETY: it came from `Box::into_raw`, and this swap has removed it, so that only this
            // thread has it.
            drop(unsafe { Box::from_raw(config) });
        }
    }
}

/// Returns the configuration of a recording that was about to begin when this process was forked,
/// or `None`. Only the thread that starts the recorder may call this. In the process that begins
/// the recording no other thread can start, so only the child of a fork finds a configuration.
pub(crate) fn pending_config() -> Option<Config> {
    // SAFETY: only the thread that starts the recorder frees it, and that is the calling thread.
    unsafe { PENDING.load(Ordering::Acquire).as_ref() }.cloned()
}

/// Returns true if this process, or its parent before the fork, is about to begin a new recording.
/// Async-signal-safe.
pub(crate) fn is_restart_pending() -> bool {
    !PENDING.load(Ordering::Acquire).is_null()
}
