//! The files of a run directory: the folder of the fragments, and small files of JSON.
//!
//! The folder is opened anew each time: what has its name later is trusted as little as at the start.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::run::config::RunPaths;
use crate::sys::dir::Dir;
use crate::sys::{self, fd, read};
use sa_format::{FRAGMENTS_DIR, stem_and_segment};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest small file that is read.
const MOST_BYTES: usize = 64 << 10;

impl RunPaths {
    /// Opens the folder of the fragments; a link in its place, or another user's folder, is refused.
    pub(crate) fn open_fragments(&self) -> io::Result<Dir> {
        let directory = Dir::open_path(&self.directory)?;
        if self.fragments == self.directory {
            return Ok(directory);
        }
        directory.open_folder(FRAGMENTS_DIR)
    }

    /// Opens the folder of the fragments, making what is missing; files in it have this mode.
    pub(crate) fn create_fragments(&self, mode: u32) -> io::Result<Dir> {
        let mode = folder_mode(mode);
        let directory = Dir::create_path(&self.directory, mode)?;
        if self.fragments == self.directory {
            return Ok(directory);
        }
        directory.create_folder(FRAGMENTS_DIR, mode)
    }
}

/// The mode of folders: what files have, and search where there is read.
pub(crate) fn folder_mode(mode: u32) -> u32 {
    mode | (mode & 0o444) >> 2
}

/// Returns true if one of the names is that of a segment of this stem.
pub(crate) fn has_segment(names: &[OsString], stem: &str) -> bool {
    names.iter().any(|name| {
        let name = name.to_string_lossy();
        stem_and_segment(&name).is_some_and(|(of, _)| of == stem)
    })
}

/// Loads a small JSON file; `None` if it cannot be opened or does not hold a `T`.
pub(crate) fn load<T: DeserializeOwned>(directory: &Dir, name: &str) -> Option<T> {
    parse(&directory.open_file(name).ok()?.0)
}

/// Parses an open JSON file.
pub(crate) fn parse<T: DeserializeOwned>(file: &OwnedFd) -> Option<T> {
    let text = read::rest(file, MOST_BYTES).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Stores a small JSON file, which replaces an older one in one step. The file is locked until it is closed, which matters for the run file alone.
pub(crate) fn store(
    directory: &Dir,
    name: &str,
    mode: u32,
    contents: &impl Serialize,
) -> io::Result<OwnedFd> {
    let mut text = serde_json::to_vec(contents).map_err(io::Error::other)?;
    text.push(b'\n');
    let temporary = format!("{name}.{:016x}.tmp", sys::random());
    let file = fd::move_away(directory.create_file(&temporary, mode, libc::O_RDWR)?);
    fd::try_lock(file.as_raw_fd());
    let written = fd::write_whole(file.as_raw_fd(), &text);
    let stored = written.and_then(|()| directory.replace(&temporary, name));
    if stored.is_err() {
        let _ = directory.remove(&temporary); // only tidying
    }
    stored.map(|()| file)
}
