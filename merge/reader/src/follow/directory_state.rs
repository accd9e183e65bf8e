//! What tells that another run may have begun in a directory.

use crate::base::file_id::FileId;
use crate::base::file_status::FileStatus;
use sa_format::{FRAGMENTS_DIR, NEXT_RUN_FILE, RUN_FILE};
use std::fs;
use std::path::Path;

/// Which folders a directory has, and what its files say of the run, as far as their status tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DirectoryState {
    folders: [Option<FileId>; 2],
    files: [Option<FileStatus>; 2],
}

impl DirectoryState {
    /// That of a directory now.
    pub(super) fn of(directory: &Path) -> DirectoryState {
        let folder = |path: &Path| fs::metadata(path).ok().map(|found| FileId::of(&found));
        let file = |name: &str| {
            let found = fs::metadata(directory.join(name)).ok()?;
            Some(FileStatus::of(&found))
        };
        DirectoryState {
            folders: [folder(directory), folder(&directory.join(FRAGMENTS_DIR))],
            files: [file(RUN_FILE), file(NEXT_RUN_FILE)],
        }
    }
}
