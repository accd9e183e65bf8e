//! A file that is there as a whole, or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use trace_merge::Error;

/// One that is written under another name as yet.
pub(super) struct ReadyFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl ReadyFile {
    /// Writes it, as private as a trace, under a name that nobody can have put there before.
    pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<ReadyFile, Error> {
        let failed = |source| failed(path, source);
        if path.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        let path = path.to_owned();
        Ok(ReadyFile { file, path })
    }

    /// Gives it its name.
    pub(super) fn put(self) -> Result<(), Error> {
        let put = self.file.persist(&self.path);
        put.map_err(|error| failed(&self.path, error.error))?;
        Ok(())
    }
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_owned(),
        source,
    }
}
