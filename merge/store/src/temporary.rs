//! What goes wrong with a temporary file: its folder may lie on another disk than what is read and written.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_once() {
        let inner = named_temporary(Path::new("/inner"), io::ErrorKind::StorageFull.into());
        let error = named_temporary(Path::new("/outer"), inner);
        let words = "temporary file in /inner: ";
        assert!(error.to_string().starts_with(words), "{error}");
    }
}
