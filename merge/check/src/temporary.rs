//! Where a check puts what is too much for memory, and errors that say so: the disk there is not the one that the trace lies on.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use trace_store::named_temporary;

/// The folder of temporary files.
pub(super) struct Folder(PathBuf);

/// A file there, without a name.
pub(super) struct Temporary<'f> {
    file: File,
    folder: &'f Folder,
}

impl Folder {
    /// Where the system has them.
    pub(super) fn of_system() -> Folder {
        Folder(std::env::temp_dir())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn file(&self) -> io::Result<Temporary<'_>> {
        let file = tempfile::tempfile_in(&self.0).map_err(|error| self.named(error))?;
        Ok(Temporary { file, folder: self })
    }

    /// The error with the folder's name.
    pub(super) fn named(&self, error: io::Error) -> io::Error {
        named_temporary(&self.0, error)
    }
}

impl Temporary<'_> {
    pub(super) fn into_file(self) -> File {
        self.file
    }
}

impl Write for Temporary<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write(bytes) {
            // Whoever writes tries again.
            Err(error) if error.kind() != ErrorKind::Interrupted => Err(self.folder.named(error)),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_folder() {
        let folder = Folder("/no/such/folder".into());
        let error = folder.file().err().map(|error| error.to_string());
        let words = "temporary file in /no/such/folder: ";
        assert!(error.is_some_and(|error| error.starts_with(words)));
        let full = Temporary {
            file: File::options().write(true).open("/dev/full").unwrap(),
            folder: &Folder("/full".into()),
        };
        let error = io::copy(&mut &b"text"[..], &mut { full }).unwrap_err();
        assert!(error.to_string().starts_with("temporary file in /full: "));
    }
}
