//! What is on the disk of tables that are not whole yet.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the names of folders begin with in which tables are written.
pub(crate) const NEW: &str = ".new-";
/// Where tables lie there that others take the place of.
pub(crate) const OLD: &str = "old";
/// Its name when the others have it.
pub(crate) const REPLACED: &str = "replaced";
/// Tries to make a folder that no other writer clears away.
const TRIES: u32 = 8;

/// Tables that are being written. A clone removes them where the process must end early.
#[derive(Clone, Debug, Default)]
pub struct Unfinished(Arc<Mutex<Option<Leftover>>>);

impl Unfinished {
    /// Removes them. Those that are getting their place are waited for, and stay.
    pub fn remove(&self) {
        self.lock().take();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Leftover>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All of it; it goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Leftover {
    pub(crate) _new: NewFolder,
    pub(crate) made: FolderChanges,
}

/// A change of folders that can be undone.
#[derive(Debug)]
enum FolderChange {
    Made(PathBuf),
    Moved([PathBuf; 2]),
}

/// The folders that were made or moved so far. When dropped, it moves them back, and removes the new folders that are empty.
#[derive(Debug, Default)]
pub(crate) struct FolderChanges(Vec<FolderChange>);

impl FolderChanges {
    /// Makes a folder and those that it lies in.
    pub(crate) fn make_all(path: &Path) -> io::Result<FolderChanges> {
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let missing = path.ancestors().take_while(is_missing);
        let mut made: Vec<FolderChange> = missing
            .map(|path| FolderChange::Made(path.to_owned()))
            .collect();
        made.reverse();
        let made = FolderChanges(made);
        fs::create_dir_all(path)?;
        Ok(made)
    }

    /// Makes a folder, unless it is there.
    pub(crate) fn make(&mut self, path: PathBuf) -> io::Result<()> {
        match fs::create_dir(&path) {
            Ok(()) => self.0.push(FolderChange::Made(path)),
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

    pub(crate) fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for FolderChanges {
    fn drop(&mut self) {
        for change in self.0.iter().rev() {
            let _ = match change {
                FolderChange::Made(path) => fs::remove_dir(path), // what others have put there meanwhile stays
                FolderChange::Moved([from, to]) => fs::rename(to, from), // the failure that led here is told
            };
        }
    }
}

/// A folder in which tables are written. Its lock tells others that the writer lives.
#[derive(Debug)]
pub(crate) struct NewFolder {
    pub(crate) path: PathBuf,
    _lock: File,
}

impl NewFolder {
    /// Makes one in a folder, so on the same disk.
    pub(crate) fn make(to: &Path) -> io::Result<NewFolder> {
        for _ in 0..TRIES {
            let folder = tempfile::Builder::new().prefix(NEW).tempdir_in(to)?;
            let Ok(lock) = File::open(folder.path()) else {
                continue;
            };
            // Where a disk knows no locks, no other writer gets it either, and so clears nothing away.
            let is_taken = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            if !is_taken && folder.path().exists() {
                let path = folder.keep();
                return Ok(NewFolder { path, _lock: lock });
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }
}

/// Says of old tables that the new ones have their place, so that they may be removed.
pub(crate) fn let_old_go(folder: &Path) -> io::Result<()> {
    match fs::rename(folder.join(OLD), folder.join(REPLACED)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether old tables lie in a folder that nothing took the place of, as after a failure, or a kill, while tables were moved.
fn holds_old(folder: &Path) -> bool {
    let tables = fs::read_dir(folder.join(OLD)).into_iter().flatten();
    let has_any = |table: fs::DirEntry| {
        fs::read_dir(table.path()).is_ok_and(|mut hosts| hosts.next().is_some())
    };
    tables.flatten().any(has_any)
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if holds_old(&self.path) {
            return;
        }
        // A thread that still writes may put a file into a folder that is being emptied.
        for _ in 0..TRIES {
            if fs::remove_dir_all(&self.path).is_ok() || !self.path.exists() {
                break;
            }
        }
    }
}

/// Removes what writers left that were killed.
pub(crate) fn clear_away(to: &Path, is_ours: impl Fn(&str) -> bool) {
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
        if lock.try_lock().is_ok() && entries.all(is_ours) && !holds_old(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path()); // the next writer tries again
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kill, or a failure to move them back, leaves them in the writer's folder.
    #[test]
    fn old_tables_are_removed_only_when_others_have_their_place() {
        let to = tempfile::tempdir().unwrap();
        let new = NewFolder::make(to.path()).unwrap();
        let path = new.path.clone();
        let old = path.join(OLD).join("slice/host=a");
        fs::create_dir_all(&old).unwrap();
        drop(new);
        clear_away(to.path(), |_| true);
        assert!(old.exists());
        let_old_go(&path).unwrap();
        clear_away(to.path(), |_| true);
        assert!(!path.exists());
    }
}
