//! The error of a merge and of everything that reads fragments.

use crate::store::{self, named_temporary};
use std::io;
use std::path::{Path, PathBuf};
use trace_store::TemporaryError;

/// Reason why a merge produced no trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No input could be read.
    #[error("nothing to merge: {0}")]
    NothingUsable(String),
    /// The options contradict each other.
    #[error("{0}")]
    Usage(String),
    /// The trace could not be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// Path of the trace.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A temporary file could not be read back.
    #[error("temporary file in {}: {source}", folder.display())]
    Temporary {
        /// Folder of the file: `TMPDIR`, or the folder of the trace.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The reader of standard output closed it.
    #[error("standard output was closed")]
    BrokenPipe,
}

impl Error {
    /// Returns the error for a temporary file in `folder`. If `source` names another folder, the error names that one.
    pub fn from_temporary(folder: &Path, source: io::Error) -> Error {
        let (folder, source) = match source.downcast() {
            Ok(TemporaryError { folder, source }) => (folder, source),
            Err(source) => (folder.to_owned(), source),
        };
        Error::Temporary { folder, source }
    }

    /// Returns the error for a trace that could not be written.
    pub fn from_write(path: &Path, source: io::Error) -> Error {
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

/// Tries `work` in each folder until it succeeds in one.
///
/// # Errors
/// Returns the error of the last folder.
pub fn try_folders<'f, T>(
    folders: &'f [PathBuf],
    mut work: impl FnMut(&'f Path) -> io::Result<T>,
) -> Result<T, Error> {
    let named = |folder| work(folder).map_err(|error| named_temporary(folder, error));
    store::try_folders(folders, named).map_err(|error| Error::from_temporary(Path::new(""), error))
}
