//! Temporary files, which are created in the first folder that accepts them. An error names the folder, because it may be on another disk than the inputs and
//! the output.

use std::io;
use std::path::{Path, PathBuf};

/// A temporary file that could not be written or read back.
#[derive(Debug, thiserror::Error)]
#[error("temporary file in {}: {source}", folder.display())]
pub struct TemporaryError {
    /// Folder of the file.
    pub folder: PathBuf,
    /// Cause of the failure.
    pub source: io::Error,
}

/// Adds the folder's name to an error, unless it has one already.
pub fn named_temporary(folder: &Path, source: io::Error) -> io::Error {
    match source.get_ref() {
        Some(inner) if inner.is::<TemporaryError>() => source,
        _ => io::Error::other(TemporaryError {
            folder: folder.to_owned(),
            source,
        }),
    }
}

/// Calls `create` with each folder until it succeeds.
///
/// # Errors
/// Returns the error of the last folder if all fail.
pub fn try_folders<'f, T>(
    folders: &'f [impl AsRef<Path>],
    mut create: impl FnMut(&'f Path) -> io::Result<T>,
) -> io::Result<T> {
    let mut failure = io::ErrorKind::NotFound.into();
    for folder in folders {
        match create(folder.as_ref()) {
            Ok(created) => return Ok(created),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
