//! Files and folders of tables that are not complete yet.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Prefix of the names of folders in which tables are written.
pub(crate) const NEW: &str = ".new-";
/// Subfolder for the old tables while they are being replaced.
pub(crate) const OLD: &str = "old";
/// Name of that subfolder after the old tables were replaced.
pub(crate) const REPLACED: &str = "replaced";
/// Maximum number of attempts to create a folder that no other writer removes.
const TRIES: u32 = 8;

/// Handle of tables that are being written. A clone can remove them if the process has to end early.
#[derive(Clone, Debug, Default)]
pub struct Unfinished(Arc<Mutex<Option<Leftover>>>);

impl Unfinished {
    /// Removes the unfinished tables. If they are being moved to their final place, waits for that, and keeps them.
    pub fn remove(&self) {
        self.lock().take();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Leftover>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Everything that belongs to unfinished tables. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Leftover {
    pub(crate) _new: NewFolder,
    pub(crate) created: FolderChanges,
}

/// A change of folders that can be undone.
#[derive(Debug)]
enum FolderChange {
    Created(PathBuf),
    Moved([PathBuf; 2]),
}

/// Folders that were created or moved. When this is dropped, it moves them back and removes new folders that are empty.
#[derive(Debug, Default)]
pub(crate) struct FolderChanges(Vec<FolderChange>);

impl FolderChanges {
    /// Creates a folder and its missing ancestors.
    pub(crate) fn create_all(path: &Path) -> io::Result<FolderChanges> {
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let missing = path.ancestors().take_while(is_missing);
        let mut created: Vec<FolderChange> = missing
            .map(|path| FolderChange::Created(path.to_owned()))
            .collect();
        created.reverse();
        let created = FolderChanges(created);
        fs::create_dir_all(path)?;
        Ok(created)
    }

    /// Creates a folder unless it exists.
    pub(crate) fn create(&mut self, path: PathBuf) -> io::Result<()> {
        match fs::create_dir(&path) {
            Ok(()) => self.0.push(FolderChange::Created(path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    pub(crate) fn rename(&mut self, from: PathBuf, to: PathBuf) -> io::Result<()> {
        fs::rename(&from, &to)?;
        self.0.push(FolderChange::Moved([from, to]));
        Ok(())
    }

    /// Makes the changes permanent.
    pub(crate) fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for FolderChanges {
    fn drop(&mut self) {
        for change in self.0.iter().rev() {
            let _ = match change {
                FolderChange::Created(path) => fs::remove_dir(path), // Fails if other programs have created files there.
                FolderChange::Moved([from, to]) => fs::rename(to, from), // The first failure is reported instead.
            };
        }
    }
}

/// A folder in which tables are written. Its lock shows other writers that this one is alive.
#[derive(Debug)]
pub(crate) struct NewFolder {
    pub(crate) path: PathBuf,
    _lock: File,
}

impl NewFolder {
    /// Creates the folder inside `to`, so that it is on the same disk.
    pub(crate) fn create(to: &Path) -> io::Result<NewFolder> {
        for _ in 0..TRIES {
            let folder = tempfile::Builder::new().prefix(NEW).tempdir_in(to)?;
            let Ok(lock) = File::open(folder.path()) else {
                continue;
            };
            // If the disk does not support locks, no other writer gets the lock either, so none removes the folder.
            let is_taken = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            if !is_taken && folder.path().exists() {
                let path = folder.keep();
                return Ok(NewFolder { path, _lock: lock });
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }
}

/// Marks old tables as replaced, so that they may be removed.
pub(crate) fn mark_replaced(folder: &Path) -> io::Result<()> {
    match fs::rename(folder.join(OLD), folder.join(REPLACED)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns true if the folder contains old tables that were not replaced, because tables could not be moved or the process was killed meanwhile.
fn has_old(folder: &Path) -> bool {
    let tables = fs::read_dir(folder.join(OLD)).into_iter().flatten();
    let has_any = |table: fs::DirEntry| {
        fs::read_dir(table.path()).is_ok_and(|mut hosts| hosts.next().is_some())
    };
    tables.flatten().any(has_any)
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if has_old(&self.path) {
            return;
        }
        // A thread that is still writing may create a file in a folder that is being removed.
        for _ in 0..TRIES {
            if fs::remove_dir_all(&self.path).is_ok() || !self.path.exists() {
                break;
            }
        }
    }
}

/// Removes the folders of writers that were killed.
pub(crate) fn remove_abandoned(to: &Path, is_ours: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(to).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || !entry.file_name().to_string_lossy().starts_with(NEW) {
            continue;
        }
        let Ok(lock) = File::open(entry.path()) else {
            continue;
        };
        let Ok(mut entries) = fs::read_dir(entry.path()) else {
            continue;
        };
        let is_ours = |inner: io::Result<fs::DirEntry>| {
            inner.is_ok_and(|inner| is_ours(&inner.file_name().to_string_lossy()))
        };
        if lock.try_lock().is_ok() && entries.all(is_ours) && !has_old(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path()); // If this fails, the next writer tries again.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Old tables stay in the writer's folder if it was killed, or if they could not be moved back.
    #[test]
    fn old_tables_are_removed_only_after_they_were_replaced() {
        let to = tempfile::tempdir().unwrap();
        let new = NewFolder::create(to.path()).unwrap();
        let path = new.path.clone();
        let old = path.join(OLD).join("slice/host=a");
        fs::create_dir_all(&old).unwrap();
        drop(new);
        remove_abandoned(to.path(), |_| true);
        assert!(old.exists());
        mark_replaced(&path).unwrap();
        remove_abandoned(to.path(), |_| true);
        assert!(!path.exists());
    }
}
