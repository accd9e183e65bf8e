//! Threads: their ids and names, a helper thread that takes no signals, a call when a thread ends.

use std::cell::Cell;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::shared::Shared;
use super::sleep::{Bell, sleep};
use super::{map, memory, sequences};

/// What the recorder's own thread is called.
pub(crate) const HELPER: &str = "sa-profile";

/// The kernel's id of the calling thread.
pub fn tid() -> u32 {
    // SAFETY: gettid takes nothing and cannot fail.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(tid).unwrap_or(0)
}

/// The kernel's name of the calling thread.
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

/// A thread of ours that others may wake.
#[derive(Clone, Debug)]
pub struct Thread(Shared<Bell>);

impl Thread {
    /// Ends the thread's sleep, or its next one at once.
    pub fn unpark(&self) {
        self.0.ring();
    }
}

thread_local! {
    /// What wakes the calling thread, if it is one of ours.
    static OWN: Cell<*const Bell> = const { Cell::new(std::ptr::null()) };
}

/// Whether the calling thread is one of ours.
pub(crate) fn is_ours() -> bool {
    !OWN.get().is_null()
}

/// Whether a thread of this process has this id.
pub(crate) fn is_there(tid: u32) -> bool {
    // SAFETY: signal 0 is none: the kernel only looks for the thread.
    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), tid, 0) == 0 }
}

/// Sleeps until the calling thread, which is one of ours, is woken, for `time` at most.
pub fn park_timeout(time: Duration) {
    // SAFETY: set by `begin`, which keeps the bell as long as the thread runs.
    match unsafe { OWN.get().as_ref() } {
        Some(bell) => {
            bell.wait(time);
        }
        None => sleep(time),
    }
}

/// What a thread of ours begins with.
struct Start<F> {
    name: [u8; 16],
    bell: Shared<Bell>,
    /// Rung as soon as the C library is done with the thread's beginning.
    begun: Shared<Bell>,
    run: F,
}

/// Memory that the C library keeps for a thread which allocates, on top of its stack; it tries twice as much first.
const HEAP_BYTES: usize = 128 << 20;
const STACK_BYTES: usize = 256 << 10;
/// What starting a thread allocates, at most.
const START_BYTES: usize = 4 << 10;
/// How long a thread that starts one of ours waits for it to begin: 100 ms in all.
const BEGIN_WAITS: u32 = 20;
const BEGIN_WAIT: Duration = Duration::from_millis(5);

/// Starts a thread with every signal blocked, so that the host's handlers never run on it. Not by the standard library, whose threads end the process where
/// memory for their signal stack is missing or refused. It waits until the thread has begun, 100 ms at most. Else the host's next filter could forbid what
/// the C library does as a thread begins, such as to register restartable sequences, and end the process.
///
/// # Errors
///
/// What the operating system says when it starts no thread. Also where that would take most of a limited address space, or signals cannot be blocked.
pub fn spawn_quiet<F: FnOnce() + Send + 'static>(name: &str, run: F) -> io::Result<Thread> {
    map::look_for_space(HEAP_BYTES + STACK_BYTES)?;
    if sequences::would_end_the_process() {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    memory::look_for_room(START_BYTES + size_of::<Start<F>>())?;
    let bell = Shared::new(Bell::default())?;
    let begun = Shared::new(Bell::default())?;
    let mut shown = [0; 16]; // with a NUL at its end
    let len = name.len().min(shown.len() - 1);
    shown[..len].copy_from_slice(&name.as_bytes()[..len]);
    let start = memory::boxed(Start {
        name: shown,
        bell: bell.clone(),
        begun: begun.clone(),
        run,
    });
    let start = Box::into_raw(start?);
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: fills a valid signal set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: zeroed and filled above.
    let all = unsafe { all.assume_init() };
    let started = with_blocked(&all, || create(begin::<F>, start.cast())).flatten();
    if started.is_err() {
        // SAFETY: no thread has begun that would own it.
        drop(unsafe { Box::from_raw(start) });
    } else {
        // A signal ends a wait early, and the clock may be refused: so they are counted.
        let _ = (0..BEGIN_WAITS).any(|_| begun.wait(BEGIN_WAIT));
    }
    started.map(|()| Thread(bell))
}

extern "C" fn begin<F: FnOnce()>(start: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: whoever started the thread gave it this box.
    let start = *unsafe { Box::from_raw(start.cast::<Start<F>>()) };
    start.begun.ring();
    // SAFETY: PR_SET_NAME reads a C string.
    unsafe { libc::prctl(libc::PR_SET_NAME, start.name.as_ptr()) };
    OWN.set(std::ptr::from_ref(&*start.bell));
    let _ = std::panic::catch_unwind(AssertUnwindSafe(start.run)); // a panic of ours ends our thread alone
    OWN.set(std::ptr::null());
    std::ptr::null_mut()
}

/// Runs something while the calling thread blocks these signals too.
pub(super) fn with_blocked<R>(signals: &libc::sigset_t, run: impl FnOnce() -> R) -> io::Result<R> {
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both sets are valid; the calling thread's mask is put back below.
    let blocked = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, signals, before.as_mut_ptr()) };
    error_number(blocked)?;
    let done = run();
    // SAFETY: `before` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    Ok(done)
}

/// Starts a thread that nobody waits for; with the usual stack where ours is too small for what the host's libraries keep in each.
fn create(
    begin: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void,
    start: *mut libc::c_void,
) -> io::Result<()> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::zeroed();
    // SAFETY: valid to fill.
    error_number(unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) })?;
    let attributes = attributes.as_mut_ptr();
    let mut thread: libc::pthread_t = 0;
    // SAFETY: initialised above; the state is one that the C library knows.
    unsafe { libc::pthread_attr_setdetachstate(attributes, libc::PTHREAD_CREATE_DETACHED) };
    let mut made = libc::EINVAL;
    for bytes in [STACK_BYTES, 8 * STACK_BYTES] {
        // SAFETY: as above; a size that cannot be is refused.
        unsafe { libc::pthread_attr_setstacksize(attributes, bytes) };
        // SAFETY: everything is valid for the call, and the thread owns `start` if it begins.
        made = unsafe { libc::pthread_create(&raw mut thread, attributes, begin, start) };
        if made != libc::EINVAL {
            break;
        }
    }
    // SAFETY: initialised above, and not used any more.
    unsafe { libc::pthread_attr_destroy(attributes) };
    error_number(made)
}

fn error_number(number: libc::c_int) -> io::Result<()> {
    match number {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

/// Ends the calling thread as the last one of a process, so that the process ends as it would without us. Its first thread has ended by
/// `pthread_exit`, or by the system call alone. The C library knows which it was, and runs what the host wants done at its exit now, or nothing. The
/// code of the last thread is that of the process: after `pthread_exit` it is 0, else that of the first one.
pub(crate) fn end_as_the_last(code: i32) {
    let none = std::mem::MaybeUninit::<libc::sigset_t>::zeroed(); // an empty set on Linux
    // SAFETY: the set is valid.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) };
    if code != 0 {
        // SAFETY: the thread holds nothing that another one waits for.
        unsafe { libc::syscall(libc::SYS_exit, code) };
    }
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
    let Some(Ok(key)) = key.checked_sub(1).map(libc::pthread_key_t::try_from) else {
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
