//! The names and folders in which a library is searched for, in order. Only this module reads the environment variables that affect the search.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The default installation folders of CANN.
const INSTALLED: [&str; 3] = [
    "/usr/local/Ascend/ascend-toolkit/latest/lib64",
    "/usr/local/Ascend/cann/lib64",
    "/usr/local/Ascend/latest/lib64",
];

/// The folders of the driver's libraries.
const DRIVER: [&str; 2] = [
    "/usr/local/Ascend/driver/lib64/driver",
    "/usr/local/Ascend/driver/lib64",
];

/// The names of a library, best first, and the folders to search if the loader does not find it by name.
///
/// [`crate::Library::open`] prefers a library that the process has already loaded under any of the names. Then it tries to load one by name, and last from the
/// folders. This order avoids two copies in one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    pub(crate) names: Vec<String>,
    pub(crate) folders: Vec<PathBuf>,
}

impl Candidates {
    /// Creates candidates for a library from its possible file names and the folders in which it may be.
    pub fn new(names: &[&str], folders: &[&Path]) -> Self {
        Self {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            folders: folders.iter().map(|folder| folder.to_path_buf()).collect(),
        }
    }

    /// Returns the file names and folders of the ACL runtime. The CANN version determines which of the two libraries defines the functions, but both give
    /// access to them.
    pub fn acl() -> Self {
        Self::in_toolkit(&["libacl_rt.so", "libascendcl.so"])
    }

    /// Returns the file names and folders of the library for the rt level, the vendor's interface below ACL.
    pub fn rt() -> Self {
        Self::in_toolkit(&["libruntime.so"])
    }

    /// Returns the file names and folders of MSPTI, which records the activity of the devices.
    pub fn mspti() -> Self {
        Self::in_toolkit(&["libmspti.so"])
    }

    /// Returns the file names and folders of the hardware abstraction layer, which is part of the driver.
    pub fn hal() -> Self {
        let mut candidates = Self::in_toolkit(&["libascend_hal.so"]);
        let driver = DRIVER.iter().map(PathBuf::from);
        candidates.folders.splice(0..0, driver);
        candidates
    }

    fn in_toolkit(names: &[&str]) -> Self {
        let homes = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"].map(variable);
        let homes = homes.into_iter().flatten().map(PathBuf::from);
        Self {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            folders: folders(homes),
        }
    }
}

/// Returns the library folders of CANN installations: those in `homes`, then the default ones, each once. Relative homes are left out, because they would load
/// libraries from the working directory.
fn folders(homes: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let homes = homes.filter(|home| home.is_absolute());
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in homes
        .map(|home| home.join("lib64"))
        .chain(INSTALLED.iter().map(PathBuf::from))
    {
        if !found.contains(&folder) {
            found.push(folder);
        }
    }
    found
}

/// Returns the value of an environment variable that selects a library to load. Returns `None` in a program with raised privileges (set-user-id, set-group-id,
/// file capabilities), because the unprivileged caller sets the variables and could run any code with the program's rights. The dynamic linker ignores such
/// variables too.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    // SAFETY: only reads a value that the kernel passed to the process.
    let is_privileged = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if is_privileged {
        None
    } else {
        std::env::var_os(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders_for(homes: &[&str]) -> Vec<String> {
        let found = folders(homes.iter().map(PathBuf::from));
        let texts = found.iter().map(|folder| folder.display().to_string());
        texts.collect()
    }

    #[test]
    fn homes_come_before_the_default_folders_and_no_folder_comes_twice() {
        let default = "/usr/local/Ascend/ascend-toolkit/latest";
        let found = folders_for(&["/opt/cann", default, "/opt/cann"]);
        assert_eq!(found[0], "/opt/cann/lib64");
        assert_eq!(found[1], format!("{default}/lib64"));
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn empty_and_relative_homes_are_left_out() {
        assert_eq!(folders_for(&["", "here"]), INSTALLED);
    }
}
