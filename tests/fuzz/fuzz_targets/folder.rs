//! The working folder of a target, in memory if possible.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns the folder. The first call creates it and makes it the folder for temporary files. That call must come before any other thread starts.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let shared = Some(PathBuf::from("/dev/shm")).filter(|shared| shared.is_dir());
        let parent = shared.unwrap_or_else(std::env::temp_dir);
        let folder = parent.join(format!("trace-merge-fuzz.{}", std::process::id()));
        std::fs::create_dir_all(folder.join("fragments")).expect("a folder");
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var("TMPDIR", &folder) };
        folder
    })
}
