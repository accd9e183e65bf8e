//! Finds files of the Python package with which this program was installed: `lib/python3…/site-packages/sa_profile` next to the program's folder.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const PACKAGE: &str = "sa_profile";

/// Returns the path of a file of the package that was installed with a program. `place` is its path in the package.
pub(crate) fn file(program: &Path, place: &Path) -> Option<PathBuf> {
    let prefix = program.parent()?.parent()?;
    let mut folders = vec![prefix.to_owned()]; // the layout of `pip install --target`
    for library in ["lib", "lib64"] {
        folders.extend(package_folders(&prefix.join(library)));
    }
    let mut files = folders
        .into_iter()
        .map(|folder| folder.join(PACKAGE).join(place));
    files.find(|file| file.exists())
}

/// Returns the package folders of all Python versions in a prefix, sorted by name.
fn package_folders(library: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(library).into_iter().flatten().flatten();
    let pythons = entries.filter(|entry| entry.file_name().as_bytes().starts_with(b"python3"));
    let mut pythons: Vec<PathBuf> = pythons.map(|entry| entry.path()).collect();
    pythons.sort();
    let packages = |python: PathBuf| {
        // Debian has another name for the folder of its own Python.
        ["site-packages", "dist-packages"].map(|name| python.join(name))
    };
    pythons.into_iter().flat_map(packages).collect()
}
