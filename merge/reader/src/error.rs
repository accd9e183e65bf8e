//! The error of a merge and of everything that reads fragments.

use crate::store::{self, named_temporary};
use std::io;
use std::path::{Path, PathBuf};
use trace_store::TemporaryError;

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No input could be read.
    #[error("nothing to merge: {0}")]
    NothingUsable(String),
    /// The options make no sense.
    #[error("{0}")]
    Usage(String),
    /// The trace could not be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The trace.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A temporary file could not be read back.
    #[error("temporary file in {}: {source}", folder.display())]
    Temporary {
        /// Its folder: `TMPDIR`, or that of the trace.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The reader of the standard output went away.
    #[error("standard output was closed")]
    BrokenPipe,
}

impl Error {
    /// Returns the error of a temporary file in `folder`, unless `source` names another one.
    pub fn of_temporary(folder: &Path, source: io::Error) -> Error {
        let (folder, source) = match source.downcast() {
            Ok(TemporaryError { folder, source }) => (folder, source),
            Err(source) => (folder.to_owned(), source),
        };
        Error::Temporary { folder, source }
    }

    /// Returns the error of a trace that could not be written.
    pub fn of_write(path: &Path, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::BrokenPipe {
            return Error::BrokenPipe;
        }
        let is_named = !path.as_os_str().is_empty();
        let path = if is_named {
            path
        } else {
            Path::new("standard output")
        };
        Error::Write {
            path: path.to_owned(),
            source,
        }
    }
}

/// Does something in the first of the folders in which it can be done.
///
/// # Errors
/// Returns the error of the last folder.
pub fn in_first<'f, T>(
    folders: &'f [PathBuf],
    mut work: impl FnMut(&'f Path) -> io::Result<T>,
) -> Result<T, Error> {
    let named = |folder| work(folder).map_err(|error| named_temporary(folder, error));
    store::in_first(folders, named).map_err(|error| Error::of_temporary(Path::new(""), error))
}
