//! The folder for temporary files.

use crate::error::Error;
use crate::store::{self, named_temporary};
use std::io;
use std::path::{Path, PathBuf};

/// Does something in the first of the folders in which it can be done.
///
/// # Errors
/// What went wrong in the last one.
pub fn in_first<'f, T>(
    folders: &'f [PathBuf],
    mut work: impl FnMut(&'f Path) -> io::Result<T>,
) -> Result<T, Error> {
    let named = |folder| work(folder).map_err(|error| named_temporary(folder, error));
    store::in_first(folders, named).map_err(|error| Error::of_temporary(Path::new(""), error))
}
