//! The Python package that brought this program: `lib/python3…/site-packages/sa_profile` beside the program's folder.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const PACKAGE: &str = "sa_profile";

/// A file of the package that was installed with a program, by its place in the package.
pub(crate) fn file(program: &Path, place: &Path) -> Option<PathBuf> {
    let prefix = program.parent()?.parent()?;
    let mut folders = vec![prefix.to_owned()]; // as `pip install --target` lays it out
    for library in ["lib", "lib64"] {
        folders.extend(package_folders(&prefix.join(library)));
    }
    let mut files = folders
        .into_iter()
        .map(|folder| folder.join(PACKAGE).join(place));
    files.find(|file| file.exists())
}

/// Where the Pythons of a prefix keep their packages, sorted by name.
fn package_folders(library: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(library).into_iter().flatten().flatten();
    let pythons = entries.filter(|entry| entry.file_name().as_bytes().starts_with(b"python3"));
    let mut pythons: Vec<PathBuf> = pythons.map(|entry| entry.path()).collect();
    pythons.sort();
    let packages = |python: PathBuf| {
        // Debian names the folder of its own Python differently.
        ["site-packages", "dist-packages"].map(|name| python.join(name))
    };
    pythons.into_iter().flat_map(packages).collect()
}
