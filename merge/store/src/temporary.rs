//! Temporary files: they go to the first folder that accepts them. An error names the folder, because it may be on another disk than the inputs and the output.

use std::io;
use std::path::{Path, PathBuf};

/// A temporary file that could not be written or read back.
#[derive(Debug, thiserror::Error)]
#[error("temporary file in {}: {source}", folder.display())]
pub struct TemporaryError {
    /// Where it is.
    pub folder: PathBuf,
    /// What happened.
    pub source: io::Error,
}

/// The error with the folder's name, unless it has one.
pub fn named_temporary(folder: &Path, source: io::Error) -> io::Error {
    match source.get_ref() {
        Some(inner) if inner.is::<TemporaryError>() => source,
        _ => io::Error::other(TemporaryError {
            folder: folder.to_owned(),
            source,
        }),
    }
}

/// Does it in the first of the folders in which it can be done.
///
/// # Errors
/// The last folder's, if none takes it.
pub fn in_first<'f, T>(
    folders: &'f [impl AsRef<Path>],
    mut make: impl FnMut(&'f Path) -> io::Result<T>,
) -> io::Result<T> {
    let mut failure = io::ErrorKind::NotFound.into();
    for folder in folders {
        match make(folder.as_ref()) {
            Ok(made) => return Ok(made),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
