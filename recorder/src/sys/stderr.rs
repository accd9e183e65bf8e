//! Writes one line to the host's stderr without blocking or killing the host.

use super::sleep::timespec;
use super::thread;
use std::os::fd::RawFd;
use std::time::Duration;

/// Maximum length of a line in bytes: a pipe that can be written to accepts this much at once.
const LINE_BYTES: usize = 4096;
/// Signals that a write may raise and that kill the process by default: a pipe without a reader, a
/// file at its size limit.
const DEADLY: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Writes a line to stderr, cut to the maximum length. Leaves it out if the write would block or
/// fail.
pub(super) fn write_line(line: &[u8]) {
    if can_write(libc::STDERR_FILENO) {
        write_unharmed(libc::STDERR_FILENO, &line[..line.len().min(LINE_BYTES)]);
    }
}

/// Returns true if a write to this descriptor would neither block nor fail.
fn can_write(fd: RawFd) -> bool {
    let mut poll = libc::pollfd {
        fd,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: `poll` is one valid pollfd. A bad descriptor is a result.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    ready == 1 && poll.revents == libc::POLLOUT
}

/// Writes bytes to a descriptor with `SIGPIPE` and `SIGXFSZ` blocked in this thread, and discards
/// these signals if the write raised them.
fn write_unharmed(fd: RawFd, bytes: &[u8]) {
    let raised_before = pending();
    let _ = thread::with_blocked(&signal_set(&DEADLY), || {
        // SAFETY: the buffer is valid for its length. A closed descriptor is an error that changes
        // nothing. The caller has checked that there is room, and the signals of a failing write
        // are blocked.
        unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        let is_new = |signal: &libc::c_int| !contains(&raised_before, *signal);
        DEADLY.into_iter().filter(is_new).for_each(discard);
    }); // if they cannot be blocked, nothing is written
}

fn discard(signal: libc::c_int) {
    let now = timespec(Duration::ZERO);
    let set = signal_set(&[signal]);
    // SAFETY: set and time are valid, and no information is requested. The call does not wait.
    unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const now) };
}

fn pending() -> libc::sigset_t {
    let mut set = signal_set(&[]);
    // SAFETY: `set` is valid to fill.
    unsafe { libc::sigpending(&raw mut set) };
    set
}

fn contains(set: &libc::sigset_t, signal: libc::c_int) -> bool {
    // SAFETY: the set is valid and initialised.
    unsafe { libc::sigismember(std::ptr::from_ref(set), signal) == 1 }
}

fn signal_set(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: initialises the set as a valid, empty one.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for signal in signals {
        // SAFETY: the set is valid, and the number is that of a signal.
        unsafe { libc::sigaddset(set.as_mut_ptr(), *signal) };
    }
    // SAFETY: zeroed and emptied above.
    unsafe { set.assume_init() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;

    #[test]
    fn a_pipe_is_written_only_while_somebody_reads_and_it_has_room() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        assert!(can_write(writer.as_raw_fd()));
        write_unharmed(writer.as_raw_fd(), b"line");
        let mut line = [0; 4];
        reader.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"line");
        // SAFETY: F_GETPIPE_SZ takes no argument.
        let room = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_GETPIPE_SZ) };
        let filling = vec![0; usize::try_from(room).unwrap()];
        writer.write_all(&filling).unwrap();
        assert!(!can_write(writer.as_raw_fd()), "full");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert!(!can_write(writer.as_raw_fd()), "nobody reads");
        assert!(!can_write(-1));
    }

    #[test]
    fn a_reader_that_closes_before_the_write_does_not_kill_the_process() {
        // SAFETY: sets the default action, as in a host that is not written in Rust. Restored
        // below.
        let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        write_unharmed(writer.as_raw_fd(), b"line");
        assert!(!contains(&pending(), libc::SIGPIPE));
        // SAFETY: restores the previous action.
        unsafe { libc::signal(libc::SIGPIPE, before) };
    }
}
