//! The warming of page-cache memory.

use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Bytes that a child writes and removes before it starts: the file's pages then come from memory this machine has touched.
const WARM_BYTES: usize = 128 << 20;

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
