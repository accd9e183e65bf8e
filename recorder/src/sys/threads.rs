//! The threads of this process as `/proc` shows them: their number, and whether the first one is
//! still alive.

use super::thread::{HELPER, tid};
use super::{fd, read};

/// The kernel's information about the threads of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ThreadCount {
    /// Number of threads. The first one is counted even after it has ended.
    threads: u32,
    has_first: bool,
    /// Exit code of the first thread.
    code: i32,
}

impl ThreadCount {
    /// Reads the number of threads and the state of the first one. Returns `None` if `/proc` does
    /// not provide them.
    fn read() -> Option<ThreadCount> {
        let mut text = [0; 1024];
        let read = fd::read_whole(c"/proc/self/stat", &mut text).ok()?;
        ThreadCount::parse(text.get(..read)?)
    }

    /// Parses the text of `/proc/<pid>/stat`. Field 3 is the state of the first thread and field 20
    /// the number of threads. Field 52 is the wait status of the first thread.
    fn parse(stat: &[u8]) -> Option<ThreadCount> {
        let field = |number| read::stat_field(stat, number);
        let status = field(52).and_then(|status| status.parse::<i32>().ok());
        Some(ThreadCount {
            threads: field(20)?.parse().ok()?,
            has_first: !["Z", "X"].contains(&field(3)?),
            code: status.map_or(0, |status| libc::WEXITSTATUS(status)),
        })
    }
}

/// Returns true if this process has at most `others` threads besides the calling one. If `/proc`
/// does not provide the number, every thread except the first one is assumed to be one of several.
pub(crate) fn is_alone_except(others: u32) -> bool {
    let threads = threads().or_else(|| ThreadCount::read().map(|count| count.threads));
    threads.map_or_else(
        || tid() == std::process::id(),
        |threads| threads <= 1 + others,
    )
}

/// Returns the number of threads of this process. It is the link count of their directory in
/// `/proc`, minus two. Opens no file, so the number of the host's next file stays free. Returns
/// `None` if the directory does not behave as on Linux or gVisor.
fn threads() -> Option<u32> {
    let found = fd::status_at(libc::AT_FDCWD, c"/proc/self/task", 0).ok()?;
    let threads = u32::try_from(found.links).ok()?.checked_sub(2)?;
    (threads > 0).then_some(threads)
}

/// Returns true if the process's first thread is certainly alive: after its end, `/proc/self/exe`
/// leads nowhere. Opens no file.
fn has_first() -> bool {
    let mut byte = 0u8;
    // SAFETY: the path is a C string, and the buffer has room for one byte.
    unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), (&raw mut byte).cast(), 1) > 0 }
}

/// Returns the first thread's exit code if all threads of the process have ended except for
/// recorders' helpers. There may be several helpers because another library may bring its own
/// recorder.
pub(crate) fn only_helpers_are_left() -> Option<i32> {
    if has_first() {
        return None;
    }
    let count = ThreadCount::read().filter(|count| !count.has_first)?;
    others_are_helpers()?.then_some(count.code)
}

/// Returns true if all threads except the first one are recorders' helpers, according to their
/// names. Returns `None` if the list of threads cannot be read.
fn others_are_helpers() -> Option<bool> {
    let first = std::process::id().to_string();
    let mut threads = std::fs::read_dir("/proc/self/task").ok()?;
    Some(threads.all(|thread| {
        let is_helper = |path: std::path::PathBuf| {
            let name = read::file(path.join("comm"), 64);
            name.is_ok_and(|name| name.trim_ascii_end() == HELPER.as_bytes())
        };
        thread.is_ok_and(|thread| *thread.file_name() == *first || is_helper(thread.path()))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::emulator::lacks;

    #[test]
    fn threads_are_counted() {
        let stat = |state: &str, threads: u32, status: i32| {
            let rest = "0 ".repeat(31);
            format!(
                "7 (a) S (b) {state} 1 7 7 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 {threads} {rest}{status}\n"
            )
        };
        for (state, threads, status) in [("R", 1, 0), ("Z", 2, 0), ("S", 12, 0), ("Z", 2, 5 << 8)] {
            let count = ThreadCount {
                threads,
                has_first: state != "Z",
                code: status >> 8,
            };
            let text = stat(state, threads, status);
            assert_eq!(ThreadCount::parse(text.as_bytes()), Some(count), "{text}");
        }
        assert_eq!(ThreadCount::parse(b"7 (a) R 1 7"), None);
        if lacks("count of threads in /proc/self/stat", "threads_are_counted") {
            return;
        }
        assert_eq!(only_helpers_are_left(), None);
        let count_now = || ThreadCount::read().unwrap().threads;
        let alone = count_now();
        assert_eq!(threads(), Some(alone));
        let counts = std::thread::spawn(move || (threads(), count_now()))
            .join()
            .unwrap();
        assert_eq!(counts, (Some(alone + 1), alone + 1));
        let is_alone_except = std::thread::spawn(|| is_alone_except(0)).join().unwrap();
        assert!(!is_alone_except, "a thread besides the test's own");
    }
}
