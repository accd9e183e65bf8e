//! Threads: their ids and names, helper threads that receive no signals, and a callback for the end
//! of a thread.

use std::cell::Cell;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::shared::Shared;
use super::sleep::{Bell, sleep};
use super::{map, memory, sequences};

/// Name of the recorder's own thread.
pub(crate) const HELPER: &str = "sa-profile";

/// Returns the kernel's id of the calling thread.
pub fn tid() -> u32 {
    // SAFETY: gettid takes no arguments and cannot fail.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(tid).unwrap_or(0)
}

/// Returns the name of the calling thread, as the kernel stores it (up to 15 bytes).
pub(crate) fn name() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    // SAFETY: PR_GET_NAME fills up to 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, bytes.as_mut_ptr()) };
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut name = String::new();
    let room = name.try_reserve_exact(text.len() * char::REPLACEMENT_CHARACTER.len_utf8());
    room.map_err(|_| memory::out_of_memory())?;
    for chunk in text.utf8_chunks() {
        name.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            name.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Ok(name)
}

/// Handle of a thread of ours, to wake it.
#[derive(Clone, Debug)]
pub struct Thread(Shared<Bell>);

impl Thread {
    /// Wakes the thread, or makes its next sleep end immediately.
    pub fn unpark(&self) {
        self.0.ring();
    }
}

thread_local! {
    /// Bell that wakes the calling thread, if it is one of ours.
    static OWN_BELL: Cell<*const Bell> = const { Cell::new(std::ptr::null()) };
}

/// Returns true if the recorder started the calling thread, rather than the host.
pub(crate) fn is_ours() -> bool {
    !OWN_BELL.get().is_null()
}

/// Returns true if this process has a thread with this id.
pub(crate) fn exists(tid: u32) -> bool {
    // SAFETY: with signal 0 the kernel only checks that the thread exists.
    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), tid, 0) == 0 }
}

/// Puts the calling thread to sleep until [`Thread::unpark`] wakes it, at most for `time`. Only
/// threads of the recorder can be woken; others sleep the whole time.
pub fn park_timeout(time: Duration) {
    // SAFETY: set by `run_body`, which keeps the bell as long as the thread runs.
    match unsafe { OWN_BELL.get().as_ref() } {
        Some(bell) => {
            bell.wait(time);
        }
        None => sleep(time),
    }
}

/// Everything that a new thread of ours needs.
struct ThreadBody<F> {
    name: [u8; 16],
    bell: Shared<Bell>,
    /// Rung as soon as the C library has finished starting the thread.
    begun: Shared<Bell>,
    run: F,
}

/// Address space that the C library reserves for the heap of a thread that allocates, in addition
/// to its stack. It tries twice as much first.
const HEAP_BYTES: usize = 128 << 20;
const STACK_BYTES: usize = 256 << 10;
/// Maximum number of bytes that starting a thread allocates.
const START_BYTES: usize = 4 << 10;
/// Number of waits for a new thread to begin, 100 ms in all.
const BEGIN_WAITS: u32 = 20;
const BEGIN_WAIT: Duration = Duration::from_millis(5);

/// Starts a thread of the recorder that executes `run`. It has every signal blocked, so that the
/// host's handlers never run on it.
///
/// The standard library is not used: its threads end the process if memory for their signal stack
/// is missing or refused. This call waits up to 100 ms for the thread to begin. Otherwise the host
/// could install a filter that forbids what the C library does at the beginning of a thread, such
/// as registering restartable sequences. That would end the process.
///
/// # Errors
///
/// Returns the operating system's error if it starts no thread. Also fails if the thread would use
/// up most of a limited address space, or if signals cannot be blocked.
pub fn spawn_quiet<F: FnOnce() + Send + 'static>(name: &str, run: F) -> io::Result<Thread> {
    map::check_address_space(HEAP_BYTES + STACK_BYTES)?;
    if sequences::would_end_the_process() {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    memory::check_room(START_BYTES + size_of::<ThreadBody<F>>())?;
    let bell = Shared::new(Bell::default())?;
    let begun = Shared::new(Bell::default())?;
    let mut c_name = [0; 16]; // ends with a NUL
    let len = name.len().min(c_name.len() - 1);
    c_name[..len].copy_from_slice(&name.as_bytes()[..len]);
    let body = memory::try_box(ThreadBody {
        name: c_name,
        bell: bell.clone(),
        begun: begun.clone(),
        run,
    });
    let body = Box::into_raw(body?);
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: fills a valid signal set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: zeroed and filled above.
    let all = unsafe { all.assume_init() };
    let started = with_blocked(&all, || create(run_body::<F>, body.cast())).flatten();
    if started.is_err() {
        // SAFETY: no thread has begun, so nothing else owns the box.
        drop(unsafe { Box::from_raw(body) });
    } else {
        // The waits are counted because a signal ends a wait early and the clock may be refused.
        let _ = (0..BEGIN_WAITS).any(|_| begun.wait(BEGIN_WAIT));
    }
    started.map(|()| Thread(bell))
}

extern "C" fn run_body<F: FnOnce()>(body: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the thread that called `pthread_create` passed this box.
    let body = *unsafe { Box::from_raw(body.cast::<ThreadBody<F>>()) };
    body.begun.ring();
    // SAFETY: PR_SET_NAME reads a C string.
    unsafe { libc::prctl(libc::PR_SET_NAME, body.name.as_ptr()) };
    OWN_BELL.set(std::ptr::from_ref(&*body.bell));
    let _ = std::panic::catch_unwind(AssertUnwindSafe(body.run)); // a panic in `run` ends only this thread
    OWN_BELL.set(std::ptr::null());
    std::ptr::null_mut()
}

/// Calls `run` while the calling thread blocks `signals`, and restores the thread's signal mask
/// afterwards.
pub(super) fn with_blocked<R>(signals: &libc::sigset_t, run: impl FnOnce() -> R) -> io::Result<R> {
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both sets are valid. The calling thread's mask is restored below.
    let blocked = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, signals, before.as_mut_ptr()) };
    error_number(blocked)?;
    let done = run();
    // SAFETY: `before` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    Ok(done)
}

/// Starts a detached thread that executes `run_body` with the argument `body`. Uses a larger stack
/// if ours is too small for the thread-locals of the host's libraries.
fn create(
    run_body: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void,
    body: *mut libc::c_void,
) -> io::Result<()> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::zeroed();
    // SAFETY: valid to fill.
    error_number(unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) })?;
    let attributes = attributes.as_mut_ptr();
    let mut thread: libc::pthread_t = 0;
    // SAFETY: initialised above, and the C library knows the state.
    unsafe { libc::pthread_attr_setdetachstate(attributes, libc::PTHREAD_CREATE_DETACHED) };
    let mut result = libc::EINVAL;
    for bytes in [STACK_BYTES, 8 * STACK_BYTES] {
        // SAFETY: as above. An impossible size is refused.
        unsafe { libc::pthread_attr_setstacksize(attributes, bytes) };
        // SAFETY: all arguments are valid for the call, and the thread owns `body` if it begins.
        result = unsafe { libc::pthread_create(&raw mut thread, attributes, run_body, body) };
        if result != libc::EINVAL {
            break;
        }
    }
    // SAFETY: initialised above, and not used any more.
    unsafe { libc::pthread_attr_destroy(attributes) };
    error_number(result)
}

fn error_number(number: libc::c_int) -> io::Result<()> {
    match number {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

/// Ends the calling thread as the last one of a process, so that the process ends as it would
/// without the recorder. The first thread has ended either through `pthread_exit` or through the
/// bare system call. The C library knows which it was, and now runs the host's exit handlers or
/// not. The exit code of the last thread becomes that of the process: 0 after `pthread_exit`,
/// otherwise the first thread's code.
pub(crate) fn exit_as_last_thread(code: i32) {
    let none = std::mem::MaybeUninit::<libc::sigset_t>::zeroed(); // all-zero is an empty set on Linux
    // SAFETY: the set is valid.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) };
    if code != 0 {
        // SAFETY: the thread holds nothing that another thread waits for.
        unsafe { libc::syscall(libc::SYS_exit, code) };
    }
}

/// Makes the calling thread's sleeps end on time instead of up to 50 µs later.
pub(crate) fn use_short_timer_slack() {
    // SAFETY: PR_SET_TIMERSLACK takes an integer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong) };
}

/// The pthread key whose destructor runs when a thread ends, plus one; 0 until the key exists.
static KEY: AtomicU64 = AtomicU64::new(0);

/// Registers `ended` to be called with `value` when the calling thread ends.
///
/// Uses a pthread key instead of a Rust thread-local: its destruction order relative to other
/// thread-locals does not matter, and an event recorded after it simply attaches the thread again.
pub(crate) fn call_at_thread_end(
    value: *mut libc::c_void,
    ended: unsafe extern "C" fn(*mut libc::c_void),
) {
    let key = match KEY.load(Ordering::Acquire) {
        0 => make_key(ended),
        key => key,
    };
    let Some(Ok(key)) = key.checked_sub(1).map(libc::pthread_key_t::try_from) else {
        return;
    };
    // SAFETY: the key exists.
    unsafe { libc::pthread_setspecific(key, value) };
}

fn make_key(ended: unsafe extern "C" fn(*mut libc::c_void)) -> u64 {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` is valid to write to, and the destructor is a static function.
    if unsafe { libc::pthread_key_create(&mut key, Some(ended)) } != 0 {
        return 0;
    }
    let stored = u64::from(key) + 1;
    match KEY.compare_exchange(0, stored, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => stored,
        Err(other) => {
            // SAFETY: our key was never used.
            unsafe { libc::pthread_key_delete(key) };
            other
        }
    }
}
