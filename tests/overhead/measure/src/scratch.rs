//! Fresh directories for the children, and page-cache memory that is warm.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Bytes that a child writes and removes before it starts: the file's pages then come from memory this machine has touched.
const WARM_BYTES: usize = 128 << 20;

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

/// Writes and removes a file in `directory`.
///
/// # Errors
///
/// If it cannot be written.
pub fn warm_page_cache(directory: &Path) -> std::io::Result<()> {
    let path = directory.join("warm");
    let mut file = File::create(&path)?;
    let chunk = vec![1_u8; 1 << 20];
    for _ in 0..WARM_BYTES / chunk.len() {
        file.write_all(&chunk)?;
    }
    std::fs::remove_file(path)
}
