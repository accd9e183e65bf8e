//! Writes files completely or not at all, and never replaces a file that another program wrote.

use crate::bundle::is_bundle;
use crate::page::is_page;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};
use trace_merge::Error;

/// Number of bytes read to recognize a page or a bundle.
const FRONT: u64 = 4096;
/// Mode of a new file before the umask applies.
const MODE: u32 = 0o666;

/// Kinds of existing files that may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaced {
    /// A file with the same bytes. Files of this kind have no mark, so another program's file could look alike.
    Same,
    /// A page that this program wrote.
    Page,
    /// A bundle that this program wrote.
    Bundle,
}

impl Replaced {
    /// Returns an error if `path` already exists and may not be replaced by `bytes`.
    ///
    /// # Errors
    /// Also returns an error if the path cannot be checked.
    pub(super) fn check(self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(path, error)),
            Ok(_) if path.is_dir() => return Err(failed(path, ErrorKind::IsADirectory.into())),
            Ok(_) => {}
        }
        let (is_ours, expected) = match self {
            Replaced::Page => (
                begins(path, is_page),
                "a new name, or a page of this program",
            ),
            Replaced::Bundle => (
                begins(path, is_bundle),
                "a new name, or a bundle of this program",
            ),
            Replaced::Same => (
                is_same_at(path, bytes),
                "a folder without a file of this name",
            ),
        };
        match is_ours {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Usage(format!(
                "{}: expected {expected}, found another file, which is not replaced",
                path.display()
            ))),
            Err(error) => Err(failed(path, error)),
        }
    }
}

/// Returns true if `is_expected` accepts the first bytes of the file.
fn begins(path: &Path, is_expected: fn(&[u8]) -> bool) -> io::Result<bool> {
    if !path.metadata()?.is_file() {
        return Ok(false);
    }
    let mut front = Vec::new();
    File::open(path)?.take(FRONT).read_to_end(&mut front)?;
    Ok(is_expected(&front))
}

fn is_same_at(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let metadata = path.metadata()?;
    Ok(metadata.is_file() && metadata.len() == bytes.len() as u64 && fs::read(path)? == bytes)
}

/// A complete file under a temporary name.
pub(super) struct ReadyFile {
    file: NamedTempFile,
    path: PathBuf,
    replaced: Replaced,
}

impl ReadyFile {
    /// Writes `bytes` to a new file in the folder of `path`, under an unpredictable temporary name.
    /// [`persist`](Self::persist) then moves it to `path`. Fails if `path` exists and may not be replaced.
    pub(super) fn write(path: &Path, replaced: Replaced, bytes: &[u8]) -> Result<ReadyFile, Error> {
        replaced.check(path, bytes)?;
        let failed = |source| failed(path, source);
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let mut builder = Builder::new();
        let builder = builder.permissions(Permissions::from_mode(MODE));
        let file = builder.tempfile_in(folder.unwrap_or(Path::new(".")));
        let mut file = file.map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        let path = path.to_owned();
        Ok(ReadyFile {
            file,
            path,
            replaced,
        })
    }

    /// Renames the temporary file to the path for which it was written. Leaves an existing file with the same bytes
    /// unchanged, and fails if the path has another file that may not be replaced.
    pub(super) fn persist(self) -> Result<(), Error> {
        let persisted = match self.replaced {
            Replaced::Same if self.path.exists() => return Ok(()), // it has the same bytes
            Replaced::Same => self.file.persist_noclobber(&self.path),
            Replaced::Page | Replaced::Bundle => {
                self.replaced.check(&self.path, &[])?;
                self.file.persist(&self.path)
            }
        };
        persisted.map_err(|error| failed(&self.path, error.error))?;
        Ok(())
    }
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_owned(),
        source,
    }
}
