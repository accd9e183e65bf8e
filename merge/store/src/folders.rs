//! Where temporary files go: to the first of some folders that takes them.

use std::io;
use std::path::Path;

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
