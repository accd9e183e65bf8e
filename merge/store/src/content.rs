//! The bytes of a file.
//!
//! A small one is read. A large one is mapped, and watched: others may cut it short while it is read. What the program itself has written to a
//! file without a name nobody else can change.

#![expect(
    unsafe_code,
    reason = "mapping a file is the only way to read 1 GB without a copy or heap"
)]

use crate::mapped_file::{Watched, release};
use crate::spill_vec::Together;
use memmap2::Mmap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::Range;

/// Bytes of a file that is read and not mapped: a process may have some 65,000 mappings.
const SMALL_BYTES: u64 = 1 << 16;

/// The bytes of a file.
pub enum Content {
    /// Mapped; a file without a name.
    Mapped(Mmap),
    /// Mapped; a file that others may write.
    Watched(Watched),
    /// On the heap.
    Owned(Vec<u8>),
    /// Where they will be among those of other files, once all are there.
    Pending(Range<usize>),
    /// Among those of other files.
    Packed(Together<u8>),
}

impl Content {
    /// Maps a file without a name, or reads it where it cannot be mapped.
    ///
    /// # Errors
    /// If it can neither be mapped nor read.
    pub fn open(file: File) -> io::Result<Content> {
        if file.metadata()?.len() > 0 {
            // SAFETY: the mapping is read-only, and nobody else can open the file.
            if let Ok(map) = unsafe { Mmap::map(&file) } {
                return Ok(Content::Mapped(map));
            }
        }
        Content::read(file)
    }

    /// Maps a file that others may write, or reads it if it is small or cannot be mapped.
    ///
    /// # Errors
    /// If it can neither be mapped nor read.
    pub fn of_others(file: File) -> io::Result<Content> {
        if file.metadata()?.len() > SMALL_BYTES
            && let Some(watched) = Watched::map(&file)
        {
            return Ok(Content::Watched(watched));
        }
        Content::read(file)
    }

    fn read(mut file: File) -> io::Result<Content> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(Content::Owned(bytes))
    }

    /// All of them; none while they are pending.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Content::Mapped(map) => map,
            Content::Watched(watched) => watched.bytes(),
            Content::Owned(bytes) => bytes,
            Content::Pending(_) => &[],
            Content::Packed(bytes) => bytes,
        }
    }

    /// Returns true if another program can change these bytes.
    pub fn is_watched(&self) -> bool {
        matches!(self, Content::Watched(_))
    }

    /// Returns true if the file was truncated while it was read. The missing bytes read as zeros.
    pub fn is_cut(&self) -> bool {
        matches!(self, Content::Watched(watched) if watched.is_cut())
    }

    /// Lets go of the pages of a range; they come back from the file when touched again.
    pub fn release(&self, start: usize, end: usize) {
        match self {
            Content::Watched(watched) => watched.release(start, end),
            Content::Mapped(map) => release(map, start, end),
            _ => {}
        }
    }
}
