//! Threads: their ids and names, a helper thread that takes no signals, a call when a thread ends.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the recorder's own thread is called.
pub(crate) const HELPER: &str = "sa-profile";

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

/// Lets the calling thread take every signal.
pub(crate) fn take_signals() {
    let none = std::mem::MaybeUninit::<libc::sigset_t>::zeroed(); // an empty set on Linux
    // SAFETY: the set is valid.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) };
}

/// What the kernel says of the threads of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    /// How many there are. The first one stays in the count when it has ended.
    threads: u32,
    has_first: bool,
    /// The code that the first one ended with.
    code: i32,
}

impl Count {
    /// `None` where `/proc` does not show it. Allocates nothing: events of signal handlers come here too.
    fn look() -> Option<Count> {
        let mut text = [0; 1024];
        // SAFETY: the path is a C string.
        let file = unsafe {
            libc::open(
                c"/proc/self/stat".as_ptr(),
                libc::O_RDONLY | libc::O_CLOEXEC,
            )
        };
        if file < 0 {
            return None;
        }
        // SAFETY: the buffer is valid for its length.
        let read = unsafe { libc::read(file, text.as_mut_ptr().cast(), text.len()) };
        // SAFETY: the number was opened just now.
        unsafe { libc::close(file) };
        Count::parse(text.get(..usize::try_from(read).ok()?)?)
    }

    /// Reads `/proc/<pid>/stat`. The second field, the name, may hold anything, so fields are counted after it: the state is the third, the count the
    /// twentieth, and the 52nd how the first thread ended, as `waitpid` says it.
    fn parse(stat: &[u8]) -> Option<Count> {
        let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
        let field = |number: usize| rest.split_ascii_whitespace().nth(number - 3);
        let status = field(52).and_then(|status| status.parse::<i32>().ok());
        Some(Count {
            threads: field(20)?.parse().ok()?,
            has_first: !["Z", "X"].contains(&field(3)?),
            code: status.map_or(0, |status| libc::WEXITSTATUS(status)),
        })
    }
}

/// Whether this process has but the calling thread. Where `/proc` does not say it, a thread that is not the first one is taken for one of several.
pub(crate) fn is_only_one() -> bool {
    Count::look().map_or_else(|| tid() == std::process::id(), |count| count.threads == 1)
}

/// Whether all threads of the process have ended, the first one among them, but those of recorders: another library may have brought one too. Gives the
/// code that the first one ended with.
pub(crate) fn only_helpers_are_left() -> Option<i32> {
    let count = Count::look().filter(|count| !count.has_first)?;
    others_are_helpers()?.then_some(count.code)
}

/// Ends the calling thread at once with this code, which is that of the process if it is the last one.
pub(crate) fn end(code: i32) {
    // SAFETY: the thread holds nothing that another one waits for.
    unsafe { libc::syscall(libc::SYS_exit, code) };
}

/// Looks at all threads but the first one.
fn others_are_helpers() -> Option<bool> {
    let first = std::process::id().to_string();
    let mut threads = std::fs::read_dir("/proc/self/task").ok()?;
    Some(threads.all(|thread| {
        let is_helper = |path: std::path::PathBuf| {
            let name = std::fs::read_to_string(path.join("comm"));
            name.is_ok_and(|name| name.trim_end() == HELPER)
        };
        thread.is_ok_and(|thread| *thread.file_name() == *first || is_helper(thread.path()))
    }))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted() {
        let stat = |state: &str, threads: u32, status: i32| {
            let rest = "0 ".repeat(31);
            format!(
                "7 (a) S (b) {state} 1 7 7 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 {threads} {rest}{status}\n"
            )
        };
        for (state, threads, status) in [("R", 1, 0), ("Z", 2, 0), ("S", 12, 0), ("Z", 2, 5 << 8)] {
            let count = Count {
                threads,
                has_first: state != "Z",
                code: status >> 8,
            };
            let text = stat(state, threads, status);
            assert_eq!(Count::parse(text.as_bytes()), Some(count), "{text}");
        }
        assert_eq!(Count::parse(b"7 (a) R 1 7"), None);
        assert_eq!(only_helpers_are_left(), None);
        let is_only_one = std::thread::spawn(is_only_one).join().unwrap();
        assert!(!is_only_one, "a thread beside that of the test");
    }
}
