//! The folder for temporary files.

use crate::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Does something in the first of the folders in which it can be done; gives that folder, too.
///
/// # Errors
/// What went wrong in the last one.
pub(crate) fn in_first<T>(
    folders: &[PathBuf],
    mut work: impl FnMut(&Path) -> io::Result<T>,
) -> Result<(PathBuf, T), Error> {
    let mut failure = None;
    for folder in folders {
        match work(folder) {
            Ok(done) => return Ok((folder.clone(), done)),
            Err(error) => failure = Some(Error::of_temporary(folder, error)),
        }
    }
    Err(failure.unwrap_or_else(|| Error::Usage("no folder for temporary files".to_owned())))
}
