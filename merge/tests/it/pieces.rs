//! Traces of one program in several files: its ranks get different names, and pieces of a process are one again.

use crate::invocation::Merged;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Writes files into a folder of their own and returns their paths.
pub(crate) fn write<P: AsRef<Path>>(files: &[(P, Value)]) -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let write = |(name, document): &(P, Value)| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, document.to_string()).unwrap();
        path
    };
    let paths = files.iter().map(write).collect();
    (folder, paths)
}

pub(crate) fn merged(options: &[&str], paths: &[PathBuf]) -> Merged {
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    Merged::of(options, &paths)
}
