//! Fresh directories for the children.

use std::path::{Path, PathBuf};

/// A fresh directory, removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes the directory of a case.
    pub(crate) fn new(name: &str) -> Result<Self, String> {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("record-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("record: {}: {error}", self.0.display());
        }
    }
}
