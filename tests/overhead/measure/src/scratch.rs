//! Fresh directories for the children, and page-cache memory that is warm.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use tempfile::TempDir;

/// Bytes that a child writes and removes before it starts: the file's pages then come from memory this machine has touched.
const WARM_BYTES: usize = 128 << 20;

/// Makes a fresh directory in the build folder, which is removed when dropped.
///
/// # Errors
///
/// If it cannot be made.
pub fn scratch() -> Result<TempDir, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let made = tempfile::Builder::new().prefix("bench-").tempdir_in(folder);
    made.map_err(|error| format!("{}: {error}", folder.display()))
}

/// Writes and removes a file in `directory`.
///
/// # Errors
///
/// If it cannot be written.
pub fn warm_page_cache(directory: &Path) -> Result<(), String> {
    let path = directory.join("warm");
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&path)?;
        let chunk = vec![1_u8; 1 << 20];
        for _ in 0..WARM_BYTES / chunk.len() {
            file.write_all(&chunk)?;
        }
        std::fs::remove_file(&path)
    };
    write().map_err(|error| format!("{}: {error}", path.display()))
}
