//! Fresh directories for the children.

use std::path::{Path, PathBuf};

/// A fresh directory, removed when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes the directory of a case below `parent`.
    ///
    /// # Errors
    ///
    /// If it cannot be made.
    pub fn new(parent: &Path, name: &str) -> Result<Self, String> {
        let path = parent.join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _left_behind_in_the_build_folder = std::fs::remove_dir_all(&self.0);
    }
}
