//! Error of a command that could not be carried out.

use std::io;
use std::path::{Path, PathBuf};

/// Reason why a command failed. Its text says what was expected and what was found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The directory does not exist or contains nothing usable, or another precondition is not met.
    #[error("{0}")]
    Unusable(String),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The reader of standard output closed it.
    #[error("standard output was closed")]
    BrokenPipe,
}

impl Error {
    pub(crate) fn file(path: &Path, source: io::Error) -> Error {
        Error::File {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn stdout(source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Error::BrokenPipe,
            _ => Error::file(Path::new("standard output"), source),
        }
    }
}

impl From<trace_merge::Error> for Error {
    fn from(error: trace_merge::Error) -> Error {
        match error {
            trace_merge::Error::NothingUsable(why) => Error::Unusable(why),
            other => Error::Unusable(other.to_string()),
        }
    }
}
