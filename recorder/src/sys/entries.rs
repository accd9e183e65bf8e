//! Reads the entries of an open directory straight from the kernel. The standard library's reader
//! panics if closing its descriptor fails: because the host has already closed it, or because a
//! filter forbids `close`.

use std::ffi::{OsStr, OsString};
use std::io::{self, Error};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Size of the buffer in 8-byte words: room for about a hundred entries, aligned as they are.
const WORDS: usize = 1024;
/// Offset of the length in an entry.
const LENGTH_AT: usize = 16;
/// Offset of the name in an entry. A NUL ends the name.
const NAME_AT: usize = 19;

/// Returns the names of all entries of an open directory, except for `.` and `..`.
pub(super) fn names(directory: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    let mut room = [0u64; WORDS];
    loop {
        let (fd, place, bytes) = (directory.as_raw_fd(), room.as_mut_ptr(), size_of_val(&room));
        // SAFETY: the buffer is valid for its length.
        let result = unsafe { libc::syscall(libc::SYS_getdents64, fd, place, bytes) };
        let filled = usize::try_from(result).map_err(|_| Error::last_os_error())?;
        if filled == 0 {
            return Ok(names);
        }
        // SAFETY: the kernel has filled this many bytes, and any value is a valid byte.
        let mut rest = unsafe { std::slice::from_raw_parts(place.cast::<u8>(), filled) };
        while let Some((name, after)) = first(rest) {
            if !matches!(name, b"." | b"..") {
                names.push(OsStr::from_bytes(name).to_owned());
            }
            rest = after;
        }
    }
}

/// Returns the name of the first entry in a buffer that the kernel filled with directory entries,
/// and the bytes after that entry.
fn first(entries: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = entries.get(LENGTH_AT..)?.first_chunk()?;
    let (entry, after) = entries.split_at_checked(u16::from_ne_bytes(*length).into())?;
    let name = entry.get(NAME_AT..)?.split(|byte| *byte == 0).next()?;
    Some((name, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_entry_of_a_large_directory_is_returned_once() {
        let dir = tempfile::tempdir().unwrap();
        let made: BTreeSet<String> = (0..700).map(|at| format!("{at:0>40}")).collect();
        for name in &made {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let open = std::fs::File::open(dir.path()).unwrap().into();
        let found = names(&open).unwrap();
        assert_eq!(found.len(), made.len());
        let found = found.into_iter().map(|name| name.into_string().unwrap());
        assert_eq!(found.collect::<BTreeSet<_>>(), made);
    }
}
