//! The files of a run directory: the folder of the fragments, and small JSON files.
//!
//! The folder is opened again each time, because whatever has its name later must be checked as
//! carefully as at first.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::run::config::RunPaths;
use crate::sys::dir::Dir;
use crate::sys::{self, fd, read};
use sa_format::{FRAGMENTS_DIR, stem_and_segment};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum length in bytes of a small file that is read.
const MAX_BYTES: usize = 64 << 10;

impl RunPaths {
    /// Opens the folder that contains the fragments of the run. Refuses a symlink in its place, and
    /// another user's folder.
    pub(crate) fn open_fragments(&self) -> io::Result<Dir> {
        let directory = Dir::open_path(&self.directory)?;
        if self.fragments == self.directory {
            return Ok(directory);
        }
        directory.open_folder(FRAGMENTS_DIR)
    }

    /// Opens the folder that contains the fragments of the run, and creates missing folders. `mode`
    /// is the mode of the files in it.
    pub(crate) fn create_fragments(&self, mode: u32) -> io::Result<Dir> {
        let mode = folder_mode(mode);
        let directory = Dir::create_path(&self.directory, mode)?;
        if self.fragments == self.directory {
            return Ok(directory);
        }
        directory.create_folder(FRAGMENTS_DIR, mode)
    }
}

/// Returns the permission bits of a folder for files with permission bits `mode`: whoever may read
/// the files may also search the folder.
pub(crate) fn folder_mode(mode: u32) -> u32 {
    mode | (mode & 0o444) >> 2
}

/// Returns true if one of these file names belongs to a segment of the fragment `stem`. The stem is
/// the part of the name before the segment number and the suffix.
pub(crate) fn has_segment(names: &[OsString], stem: &str) -> bool {
    names.iter().any(|name| {
        let name = name.to_string_lossy();
        stem_and_segment(&name).is_some_and(|(found, _)| found == stem)
    })
}

/// Reads a small JSON file from a directory. Returns `None` if it cannot be opened or does not
/// contain a `T`.
pub(crate) fn load<T: DeserializeOwned>(directory: &Dir, name: &str) -> Option<T> {
    parse(&directory.open_file(name).ok()?.0)
}

/// Reads the rest of an open JSON file. Returns `None` if it does not contain a `T`.
pub(crate) fn parse<T: DeserializeOwned>(file: &OwnedFd) -> Option<T> {
    let text = read::rest(file, MAX_BYTES).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Writes `contents` to a small JSON file and atomically replaces an existing file of that name.
/// The returned file is locked until it is closed, which only matters for the run file.
pub(crate) fn store(
    directory: &Dir,
    name: &str,
    mode: u32,
    contents: &impl Serialize,
) -> io::Result<OwnedFd> {
    let mut text = serde_json::to_vec(contents).map_err(io::Error::other)?;
    text.push(b'\n');
    let temporary = format!("{name}.{:016x}.tmp", sys::random());
    let file = fd::move_high(directory.create_file(&temporary, mode, libc::O_RDWR)?);
    fd::try_lock(file.as_raw_fd());
    let written = fd::write_whole(file.as_raw_fd(), &text);
    let stored = written.and_then(|()| directory.replace(&temporary, name));
    if stored.is_err() {
        let _ = directory.remove(&temporary); // only a cleanup
    }
    stored.map(|()| file)
}
