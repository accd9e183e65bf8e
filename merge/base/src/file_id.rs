//! Which file it is.

use rustix::fs::Stat;
use std::os::unix::fs::MetadataExt;

/// Which file it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// The number of the file system.
    pub device: u64,
    /// The file's number there.
    pub inode: u64,
}

impl FileId {
    /// That of the file with these metadata.
    pub fn of(metadata: &std::fs::Metadata) -> FileId {
        FileId {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// That of the file with this status.
    pub fn of_status(status: &Stat) -> FileId {
        FileId {
            device: status.st_dev,
            inode: status.st_ino,
        }
    }
}
