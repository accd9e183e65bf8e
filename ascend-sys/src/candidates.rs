//! Which names and folders a library is looked for in, in which order. What the environment says comes in here and nowhere else.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where CANN puts itself when nothing says otherwise.
const INSTALLED: [&str; 3] = [
    "/usr/local/Ascend/ascend-toolkit/latest/lib64",
    "/usr/local/Ascend/cann/lib64",
    "/usr/local/Ascend/latest/lib64",
];

/// Where the driver puts its libraries.
const DRIVER: [&str; 2] = [
    "/usr/local/Ascend/driver/lib64/driver",
    "/usr/local/Ascend/driver/lib64",
];

/// The names a library has, best first, and the folders to look in when the loader does not find it by itself.
///
/// [`crate::Library::open`] takes a library that the process has loaded already, by any of the names, before it loads one by name, and looks into the folders
/// last: a process shall not end up with two copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    pub(crate) names: Vec<String>,
    pub(crate) folders: Vec<PathBuf>,
}

impl Candidates {
    /// These names in these folders.
    pub fn new(names: &[&str], folders: &[&Path]) -> Self {
        Self {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            folders: folders.iter().map(|folder| folder.to_path_buf()).collect(),
        }
    }

    /// The ACL runtime. Which of the two names defines the functions depends on the CANN; either finds them.
    pub fn acl() -> Self {
        Self::of_toolkit(&["libacl_rt.so", "libascendcl.so"])
    }

    /// The rt level.
    pub fn rt() -> Self {
        Self::of_toolkit(&["libruntime.so"])
    }

    /// Records of what the devices did.
    pub fn mspti() -> Self {
        Self::of_toolkit(&["libmspti.so"])
    }

    /// The hardware abstraction layer, which comes with the driver.
    pub fn hal() -> Self {
        let mut candidates = Self::of_toolkit(&["libascend_hal.so"]);
        let driver = DRIVER.iter().map(PathBuf::from);
        candidates.folders.splice(0..0, driver);
        candidates
    }

    fn of_toolkit(names: &[&str]) -> Self {
        let homes = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"].map(variable);
        let homes = homes.into_iter().flatten().map(PathBuf::from);
        Self {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            folders: folders(homes),
        }
    }
}

/// The libraries' folders of these homes, then those of an ordinary installation, each once. A relative home would load whatever lies in the working directory.
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

/// Returns a variable of the environment that chooses a library to load. Returns none in a program with raised privileges (set-user-id, set-group-id, file
/// capabilities): its variables come from the caller, who could run any code with its rights. The dynamic linker ignores them there too.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    // SAFETY: reads a word that the kernel gave the process.
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

    fn of(homes: &[&str]) -> Vec<String> {
        let found = folders(homes.iter().map(PathBuf::from));
        let found = found.iter().map(|folder| folder.display().to_string());
        found.collect()
    }

    #[test]
    fn homes_come_before_the_usual_folders_and_each_folder_comes_once() {
        let twice = "/usr/local/Ascend/ascend-toolkit/latest";
        let found = of(&["/opt/cann", twice, "/opt/cann"]);
        assert_eq!(found[0], "/opt/cann/lib64");
        assert_eq!(found[1], format!("{twice}/lib64"));
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn a_home_that_is_empty_or_relative_is_no_home() {
        assert_eq!(of(&["", "here"]), INSTALLED);
    }
}
