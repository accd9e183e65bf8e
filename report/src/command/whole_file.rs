//! A file that is there as a whole, or not at all.

use std::io::Write;
use std::path::Path;
use tempfile::NamedTempFile;
use trace_merge::Error;

/// Writes it, as private as a trace, under a name that nobody can have put there before.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed = |source| Error::Write {
        path: path.to_owned(),
        source,
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}
