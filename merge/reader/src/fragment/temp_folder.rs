//! The folder for temporary files.

use crate::error::Error;
use crate::store::{self, named_temporary};
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
    let done = store::in_first(folders, |folder| {
        let done = work(folder).map_err(|error| match Error::placed(error) {
            Ok(placed) => io::Error::other(placed),
            Err(error) => named_temporary(folder, error),
        })?;
        Ok((folder.to_owned(), done))
    });
    done.map_err(|error| Error::of_temporary(Path::new(""), error))
}
