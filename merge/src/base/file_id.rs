//! Which file it is.

use rustix::fs::Stat;
use std::os::unix::fs::MetadataExt;

/// Which file it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileId {
    pub(crate) fn of(metadata: &std::fs::Metadata) -> FileId {
        FileId {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    pub(crate) fn of_status(status: &Stat) -> FileId {
        FileId {
            device: status.st_dev,
            inode: status.st_ino,
        }
    }
}
