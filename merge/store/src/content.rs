//! The bytes of a file.
//!
//! A small file is read. A large one is mapped, and watched, because another program may truncate it while it is read. A file without a name that this program
//! has written needs no watching, because no other program can change it.

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

/// Maximum size of a file that is read instead of mapped. A process may have only about 65,000 mappings.
const SMALL_BYTES: u64 = 1 << 16;

/// The bytes of a file.
pub enum Content {
    /// A mapped file without a name.
    Mapped(Mmap),
    /// A mapped file that other programs may write.
    Watched(Watched),
    /// Bytes on the heap.
    Owned(Vec<u8>),
    /// Bytes that will be packed together with those of other files. This is their range.
    Pending(Range<usize>),
    /// Bytes that are packed together with those of other files.
    Packed(Together<u8>),
}

impl Content {
    /// Maps a file without a name, or reads it if it cannot be mapped.
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

    /// Maps a file that other programs may write, or reads it if it is small or cannot be mapped.
    ///
    /// # Errors
    /// If it can neither be mapped nor read.
    pub fn open_watched(file: File) -> io::Result<Content> {
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

    /// Returns all bytes, or an empty slice while they are pending.
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

    /// Releases the pages of a range from memory. They are read from the file again on the next access.
    pub fn release(&self, start: usize, end: usize) {
        match self {
            Content::Watched(watched) => watched.release(start, end),
            Content::Mapped(map) => release(map, start, end),
            _ => {}
        }
    }
}
