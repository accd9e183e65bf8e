//! The folder for temporary files.

use crate::error::Error;
use crate::store;
use std::io;
use std::path::{Path, PathBuf};

/// Does something in the first of the folders in which it can be done; gives that folder, too.
///
/// # Errors
/// What went wrong in the last one.
pub fn in_first<'f, T>(
    folders: &'f [PathBuf],
    mut work: impl FnMut(&'f Path) -> io::Result<T>,
) -> Result<(PathBuf, T), Error> {
    let mut last = PathBuf::new();
    let done = store::in_first(folders, |folder| {
        folder.clone_into(&mut last);
        work(folder)
    });
    match done {
        Ok(done) => Ok((last, done)),
        Err(error) => Err(Error::of_temporary(&last, error)),
    }
}
