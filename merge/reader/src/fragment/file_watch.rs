//! Detects changes that another program makes to a fragment while it is merged.

use crate::base::file_status::FileStatus;
use crate::base::folder::Place;
use crate::fragment::blocks::Piece;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// State of a file when it was opened and first read.
#[derive(Debug, Default)]
pub struct FileWatch {
    status: Option<FileStatus>,
    /// Set if the file was written just before it was opened: another change might not alter its times.
    was_recent: bool,
    /// The sum of its blocks when they were found first.
    pub(super) blocks: OnceLock<u64>,
    /// Number of lines that were no longer valid events when they were copied to the trace.
    removed_lines: AtomicU64,
}

impl FileWatch {
    /// Creates the state of a file that was just opened.
    pub fn of(file: &Metadata) -> FileWatch {
        let status = FileStatus::of(file);
        FileWatch {
            status: Some(status),
            was_recent: status.is_recent(),
            ..FileWatch::default()
        }
    }

    /// Returns true if the file at this place was truncated or rewritten since. A file that is gone was not: what was read of it is whole.
    pub(crate) fn was_rewritten(&self, place: &Place) -> bool {
        let now = place.status().ok().as_ref().map(FileStatus::of_stat);
        let both = now.zip(self.status);
        both.is_some_and(|(now, then)| now.was_rewritten_since(&then))
    }

    /// Returns true if the file may have been written since, given its current status.
    pub(crate) fn has_moved(&self, now: Option<FileStatus>) -> bool {
        self.was_recent || now != self.status
    }

    pub fn add_removed(&self, lines: u64) {
        self.removed_lines.fetch_add(lines, Ordering::Relaxed);
    }

    pub fn removed_lines(&self) -> u64 {
        self.removed_lines.load(Ordering::Relaxed)
    }
}

/// Hashes the positions and checksums of a fragment's blocks.
#[derive(Default)]
pub(crate) struct BlockSums(DefaultHasher);

impl BlockSums {
    pub(crate) fn add(&mut self, range: &Range<usize>, piece: Piece) {
        if let Piece::Complete(header) = piece {
            self.0.write_usize(range.start);
            self.0.write_u64(header.sum);
        }
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.finish()
    }
}
