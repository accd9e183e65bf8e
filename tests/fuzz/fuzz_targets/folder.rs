//! The folder that a target works in, in memory where that is possible.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns the folder. It is made at the first call, which is before anything else runs, and temporary files go there, too.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let shared = Some(PathBuf::from("/dev/shm")).filter(|shared| shared.is_dir());
        let parent = shared.unwrap_or_else(std::env::temp_dir);
        let folder = parent.join(format!("trace-merge-fuzz.{}", std::process::id()));
        std::fs::create_dir_all(folder.join("fragments")).expect("a folder");
        // SAFETY: nothing else runs yet.
        unsafe { std::env::set_var("TMPDIR", &folder) };
        folder
    })
}
