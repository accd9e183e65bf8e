//! Reads small files. The standard library retries an interrupted call without limit. This code
//! gives up eventually.

use std::io::{self, Error};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use super::dir::open_at;

/// Maximum number of retries of an interrupted call.
const INTERRUPTIONS: u32 = 100;

/// Returns up to `max_bytes` bytes from the start of the file at a path.
pub(crate) fn file(path: impl AsRef<Path>, max_bytes: usize) -> io::Result<Vec<u8>> {
    let path = path.as_ref().as_os_str();
    let open = || open_at(libc::AT_FDCWD, path, libc::O_RDONLY, 0);
    rest(&retry_interrupted(open)?, max_bytes)
}

/// Returns up to `max_bytes` bytes of an open file from its current position on.
pub(crate) fn rest(file: &OwnedFd, max_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut room = [0u8; 4096];
    while bytes.len() < max_bytes {
        let wanted = room.len().min(max_bytes - bytes.len());
        let read = || {
            // SAFETY: the buffer is valid for that length.
            let read = unsafe { libc::read(file.as_raw_fd(), room.as_mut_ptr().cast(), wanted) };
            usize::try_from(read).map_err(|_| Error::last_os_error())
        };
        let len = retry_interrupted(read)?;
        if len == 0 {
            break;
        }
        let more = room.get(..len).unwrap_or_default();
        let has_room = bytes.try_reserve(len);
        has_room.map_err(|_| super::memory::out_of_memory())?;
        bytes.extend_from_slice(more);
    }
    Ok(bytes)
}

/// Returns field `number` of the text of `/proc/<pid>/stat`. Fields are numbered from 1, and the
/// first two are not available. The second one, the name, may contain anything, so fields are
/// counted after it.
pub(crate) fn stat_field(stat: &[u8], number: usize) -> Option<&str> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    rest.split_ascii_whitespace().nth(number.checked_sub(3)?)
}

/// Repeats a system call as long as signals interrupt it, up to 100 times.
pub(super) fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut interruptions = 0;
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                interruptions += 1;
                if interruptions > INTERRUPTIONS {
                    return Err(error);
                }
            }
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_the_limit() {
        let file_of = tempfile::NamedTempFile::new().unwrap();
        let text = b"0123456789".repeat(1000);
        std::fs::write(file_of.path(), &text).unwrap();
        assert_eq!(file(file_of.path(), 1 << 20).unwrap(), text);
        assert_eq!(file(file_of.path(), 4097).unwrap(), text[..4097]);
        assert!(file("/nowhere", 1).is_err());
    }

    #[test]
    fn a_call_that_is_always_interrupted_fails() {
        let mut calls = 0;
        let outcome = retry_interrupted(|| -> io::Result<()> {
            calls += 1;
            Err(Error::from_raw_os_error(libc::EINTR))
        });
        assert_eq!((outcome.is_err(), calls), (true, INTERRUPTIONS + 1));
    }
}
