//! Size and times of a file, which show whether another program writes it while it is read.

use rustix::fs::Stat;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Upper bound for the resolution of file times. Two changes within it can leave the same times.
const TICK: Duration = Duration::from_millis(50);

/// Identity, size and times of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStatus {
    id: FileId,
    bytes: i64,
    /// Time of the last change of the file's bytes: seconds since 1970 and ns.
    modified: (i64, i64),
    /// Time of the last change of the file's bytes or inode: seconds since 1970 and ns.
    changed: (i64, i64),
}

impl FileStatus {
    /// Converts the metadata of a file to its id, size and times of change.
    #[expect(clippy::cast_possible_wrap, reason = "no file is that long")]
    pub fn from_metadata(file: &Metadata) -> FileStatus {
        FileStatus {
            id: FileId::from_metadata(file),
            bytes: file.size() as i64,
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    /// Converts the result of a `stat` call.
    #[expect(clippy::cast_possible_wrap, reason = "nanoseconds of a second")]
    pub fn from_stat(stat: &Stat) -> FileStatus {
        FileStatus {
            id: FileId::from_stat(stat),
            bytes: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }

    /// Returns true if the file was truncated or rewritten since `older`. Appending is not a change, and neither is a new mode or a link.
    pub fn was_rewritten_since(&self, older: &FileStatus) -> bool {
        let is_touched = self.modified != older.modified;
        self.id != older.id || self.bytes < older.bytes || self.bytes == older.bytes && is_touched
    }

    /// Returns true if the last change is so recent that another one might not alter the times.
    pub fn is_recent(&self) -> bool {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let Ok(now) = since_1970.map(|now| now.saturating_sub(TICK)) else {
            return true;
        };
        let (seconds, ns) = self.modified.max(self.changed);
        let last = u64::try_from(seconds).map(Duration::from_secs);
        let ns = Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
        last.is_ok_and(|last| last + ns >= now)
    }
}

/// Identity of a file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Number of the file system.
    pub device: u64,
    /// Number of the file in that file system.
    pub inode: u64,
}

impl FileId {
    /// Returns the id of the file with these metadata.
    pub fn from_metadata(metadata: &std::fs::Metadata) -> FileId {
        FileId {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// Returns the id of the file with this status.
    pub fn from_stat(status: &Stat) -> FileId {
        FileId {
            device: status.st_dev,
            inode: status.st_ino,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    #[test]
    fn rewriting_a_file_changes_its_status_once_it_is_not_recent() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "0123456789").unwrap();
        let status = || FileStatus::from_metadata(&file.as_file().metadata().unwrap());
        assert!(status().is_recent());
        while status().is_recent() {
            std::thread::sleep(TICK / 4);
        }
        let before = status();
        assert_eq!(status(), before);
        file.as_file().write_all_at(b"x", 3).unwrap();
        assert_ne!(status(), before);
        assert!(status().was_rewritten_since(&before));
        let before = status();
        let link = file.path().with_extension("link");
        fs::hard_link(file.path(), &link).unwrap();
        file.as_file().write_all_at(b"more", 10).unwrap();
        assert!(!status().was_rewritten_since(&before));
        fs::remove_file(link).unwrap();
        file.as_file().set_len(9).unwrap();
        assert!(status().was_rewritten_since(&before));
        let before = status();
        let mut other = File::create(file.path().with_extension("other")).unwrap();
        other.write_all(b"0123456789").unwrap();
        fs::rename(file.path().with_extension("other"), file.path()).unwrap();
        assert_ne!(
            FileStatus::from_metadata(&fs::metadata(file.path()).unwrap()),
            before
        );
    }
}
