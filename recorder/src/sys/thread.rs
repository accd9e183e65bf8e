//! Threads: their ids and names, a helper thread that takes no signals, a call when a thread ends.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kernel's id of the calling thread.
pub fn tid() -> u32 {
    // SAFETY: gettid takes nothing and cannot fail.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(tid).unwrap_or(0)
}

/// The kernel's name of the calling thread.
pub(crate) fn name() -> String {
    let mut bytes = [0u8; 16];
    // SAFETY: PR_GET_NAME fills up to 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, bytes.as_mut_ptr()) };
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Starts a thread with every signal blocked, so that the host's handlers never run on it.
///
/// # Errors
///
/// What the operating system says when it starts no thread.
pub fn spawn_quiet(
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<std::thread::Thread> {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: fills a valid signal set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: both sets are valid; the calling thread's mask is put back below.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let started = std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(256 << 10)
        .spawn(run);
    // SAFETY: `before` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    started.map(|handle| handle.thread().clone())
}

/// Lets the calling thread's sleeps end when they should instead of up to 50 µs later.
pub(crate) fn wake_punctually() {
    // SAFETY: PR_SET_TIMERSLACK takes an integer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong) };
}

/// The pthread key whose destructor runs when a thread ends, plus one; 0 before it was made.
static KEY: AtomicU64 = AtomicU64::new(0);

/// Asks for `ended` to be called with `value` when the calling thread ends.
///
/// A pthread key and not a Rust thread-local: its order against other thread-locals does not matter, and events recorded after it
/// simply attach the thread again.
pub(crate) fn call_at_end(
    value: *mut libc::c_void,
    ended: unsafe extern "C" fn(*mut libc::c_void),
) {
    let key = match KEY.load(Ordering::Acquire) {
        0 => make_key(ended),
        key => key,
    };
    let Some(key) = key
        .checked_sub(1)
        .and_then(|key| libc::pthread_key_t::try_from(key).ok())
    else {
        return;
    };
    // SAFETY: the key exists.
    unsafe { libc::pthread_setspecific(key, value) };
}

fn make_key(ended: unsafe extern "C" fn(*mut libc::c_void)) -> u64 {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` is valid to write; the destructor is a static function.
    if unsafe { libc::pthread_key_create(&mut key, Some(ended)) } != 0 {
        return 0;
    }
    let made = u64::from(key) + 1;
    match KEY.compare_exchange(0, made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => made,
        Err(other) => {
            // SAFETY: our key was never used.
            unsafe { libc::pthread_key_delete(key) };
            other
        }
    }
}
