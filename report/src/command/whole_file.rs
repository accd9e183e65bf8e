//! Writes files completely or not at all, and never over a file that belongs to somebody else.

use crate::bundle::is_bundle;
use crate::page::is_page;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};
use trace_merge::Error;

/// Bytes that are read to recognize a page or a bundle.
const FRONT: u64 = 4096;
/// Mode of a new file before the umask applies.
const MODE: u32 = 0o666;

/// Kinds of existing files that may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaced {
    /// Only a file with the same bytes, since another program's file would look alike.
    Same,
    /// Only a page that this program wrote before.
    Page,
    /// A bundle that this program wrote before; nothing else is replaced.
    Bundle,
}

impl Replaced {
    /// Returns an error if `path` is taken by something that `bytes` may not replace.
    ///
    /// # Errors
    /// If the path is taken, or cannot be checked.
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

/// Returns true if the first bytes of a file are as expected.
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
    /// Writes the file under an unpredictable temporary name.
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

    /// Gives it its name.
    pub(super) fn put(self) -> Result<(), Error> {
        let put = match self.replaced {
            Replaced::Same if self.path.exists() => return Ok(()), // the same is there already
            Replaced::Same => self.file.persist_noclobber(&self.path),
            Replaced::Page | Replaced::Bundle => {
                self.replaced.check(&self.path, &[])?;
                self.file.persist(&self.path)
            }
        };
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
