//! Creates the directory of a run, or checks an existing one that the user named.

use nix::unistd::{AccessFlags, access, geteuid};
use sa_format::DEFAULT_DIRECTORY;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Maximum number of names to try if the name of a directory exists.
const TRIES: u32 = 1000;

/// A run directory that can be recorded into.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    is_new: bool,
}

impl Directory {
    /// Creates `parent/name`, with a suffix if that name exists.
    pub(crate) fn new_below(parent: &Path, name: &str, mode: u32) -> Result<Directory, String> {
        make_all(parent, mode)?;
        for attempt in 1..TRIES {
            let path = match attempt {
                1 => parent.join(name),
                number => parent.join(format!("{name}-{number}")),
            };
            match DirBuilder::new().mode(mode).create(&path) {
                Ok(()) => return Ok(Directory { path, is_new: true }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(refused(&path, &error.to_string())),
            }
        }
        Err(refused(
            &parent.join(name),
            "exists already, and so do all similar names",
        ))
    }

    /// Uses the directory that the user named, and creates it if it does not exist.
    pub(crate) fn at(path: &Path, mode: u32) -> Result<Directory, String> {
        let is_new = !path.exists();
        make_all(path, mode)?;
        if let Some(problem) = problem(path) {
            return Err(refused(path, &problem));
        }
        Ok(Directory {
            path: path.to_owned(),
            is_new,
        })
    }

    /// Returns its path as the user would write it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the directory was just created, so that it contains only this run.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns its absolute path, for processes in other working directories.
    pub(crate) fn absolute(&self) -> Result<PathBuf, String> {
        fs::canonicalize(&self.path).map_err(|error| refused(&self.path, &error.to_string()))
    }

    /// Removes the directory if it is new and empty. Then also removes its parent if that is the default directory and empty.
    pub(crate) fn remove_if_unused(&self) {
        if self.is_new
            && fs::remove_dir(&self.path).is_ok()
            && let Some(parent) = self
                .path
                .parent()
                .filter(|parent| parent.ends_with(DEFAULT_DIRECTORY))
        {
            let _ = fs::remove_dir(parent); // fails if it is not empty
        }
    }
}

fn make_all(path: &Path, mode: u32) -> Result<(), String> {
    let made = DirBuilder::new().recursive(true).mode(mode).create(path);
    made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            refused(path, "expected a directory, found a file")
        }
        _ => refused(path, &error.to_string()),
    })
}

/// Returns the reason why a directory cannot be recorded into; `None` if it can.
pub(crate) fn problem(path: &Path) -> Option<String> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return Some(error.to_string()),
    };
    if !metadata.is_dir() {
        return Some("expected a directory, found a file".to_owned());
    }
    let (owner, user) = (metadata.uid(), geteuid().as_raw());
    if owner != user {
        return Some(format!(
            "belongs to user {owner}, expected your own ({user}): name a new directory inside it"
        ));
    }
    let access = access(path, AccessFlags::W_OK | AccessFlags::X_OK);
    let is_writable = metadata.mode() & 0o300 == 0o300;
    match access {
        Ok(()) if is_writable || user == 0 => None,
        Err(nix::Error::EROFS) => Some("is on a read-only file system".to_owned()),
        _ => Some("is not writable".to_owned()),
    }
}

fn refused(path: &Path, problem: &str) -> String {
    format!("cannot record into {}: {problem}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_taken_name_gets_a_suffix() {
        let root = tempfile::tempdir().unwrap();
        let parent = root.path().join("profile_out");
        let names = ["20260102-030405", "20260102-030405-2", "20260102-030405-3"];
        for name in names {
            let directory = Directory::new_below(&parent, names[0], 0o700).unwrap();
            assert_eq!(directory.path(), parent.join(name));
            assert!(directory.is_new());
            let mode = fs::metadata(directory.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
    }

    #[test]
    fn what_is_not_our_directory_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [&file, &file.join("below")] {
            let refused = Directory::at(path, 0o700).unwrap_err();
            assert!(
                refused.ends_with("expected a directory, found a file"),
                "{refused}"
            );
        }
        if geteuid().is_root() {
            let foreign = root.path().join("foreign");
            fs::create_dir(&foreign).unwrap();
            std::os::unix::fs::chown(&foreign, Some(65_534), None).unwrap();
            let refused = Directory::at(&foreign, 0o700).unwrap_err();
            assert!(refused.contains("belongs to user 65534"), "{refused}");
        }
    }
}
