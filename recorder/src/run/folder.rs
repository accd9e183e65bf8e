//! The folder of the fragments, by name: opened anew each time, for what may stand there later is trusted as little as at the start.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use crate::run::config::{Config, RunPaths};
use crate::sys;
use crate::sys::dir::Dir;
use crate::sys::fd;
use sa_format::{FRAGMENTS_DIR, stem_and_segment};
use serde::Serialize;

/// Where the fragments are.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    /// The run directory, which the user named.
    directory: PathBuf,
    /// The folder in it, if it is not the directory itself.
    name: Option<&'static str>,
}

impl Folder {
    /// The folder that a configuration names.
    pub(crate) fn of(paths: &RunPaths) -> Folder {
        Folder {
            directory: paths.directory.clone(),
            name: (paths.fragments != paths.directory).then_some(FRAGMENTS_DIR),
        }
    }

    /// Opens it; a link in its place, or another user's folder, is refused.
    pub(crate) fn open(&self) -> io::Result<Dir> {
        let directory = Dir::open_path(&self.directory)?;
        match self.name {
            Some(name) => directory.open_folder(name),
            None => Ok(directory),
        }
    }

    /// The path of a file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        let folder = match self.name {
            Some(name) => self.directory.join(name),
            None => self.directory.clone(),
        };
        folder.join(name)
    }

    /// Opens it, making what is missing.
    pub(crate) fn create(&self, mode: u32) -> io::Result<Dir> {
        let directory = Dir::create_path(&self.directory, mode)?;
        match self.name {
            Some(name) => directory.create_folder(name, mode),
            None => Ok(directory),
        }
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

/// Opens the fragments folder, making it if needed.
pub(crate) fn fragments_folder(config: &Config, directory: &Dir) -> io::Result<Dir> {
    if config.paths.fragments == config.paths.directory {
        return Dir::open_path(&config.paths.directory);
    }
    directory.create_folder(FRAGMENTS_DIR, folder_mode(config.mode))
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
        let _ = directory.remove(OsStr::new(&temporary)); // only tidying
    }
    stored.map(|()| file)
}
