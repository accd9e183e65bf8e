//! A file mapped read-only, whose words another process may be changing: numbers are read as single atomic loads.
#![expect(
    unsafe_code,
    reason = "the writer publishes through shared memory; reading it atomically takes a mapping and raw atomics"
)]

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Acquire};

use memmap2::MmapRaw;

/// A shared mapping of a whole file at the length it had when it was mapped.
#[derive(Debug)]
pub(super) struct Mapping(MmapRaw);

impl Mapping {
    /// Maps `file`. Whoever shortens it later makes reads fault; the tests never do that to a mapped file.
    pub(super) fn new(file: &File) -> io::Result<Self> {
        memmap2::MmapOptions::new()
            .map_raw_read_only(file)
            .map(Mapping)
    }

    /// Length in bytes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Loads the aligned u64 at `offset`; `None` outside of the file.
    pub(super) fn u64_at(&self, offset: usize) -> Option<u64> {
        let at = self.place(offset, 8)?;
        // SAFETY: `place` checked that 8 aligned bytes of the live mapping start there; nobody reads them other than atomically.
        let word = unsafe { AtomicU64::from_ptr(at.cast()) };
        Some(word.load(Acquire))
    }

    /// Loads the aligned u32 at `offset`; `None` outside of the file.
    pub(super) fn u32_at(&self, offset: usize) -> Option<usize> {
        let at = self.place(offset, 4)?;
        // SAFETY: `place` checked that 4 aligned bytes of the live mapping start there; nobody reads them other than atomically.
        let word = unsafe { AtomicU32::from_ptr(at.cast()) };
        usize::try_from(word.load(Acquire)).ok()
    }

    /// Copies `len` bytes from `offset`; `None` if they are not all in the file.
    pub(super) fn copy(&self, offset: usize, len: usize) -> Option<Vec<u8>> {
        let end = offset.checked_add(len).filter(|end| *end <= self.len())?;
        (offset..end).map(|at| self.byte_at(at)).collect()
    }

    fn byte_at(&self, offset: usize) -> Option<u8> {
        let at = self.place(offset, 1)?;
        // SAFETY: `place` checked that the live mapping contains the byte.
        let byte = unsafe { AtomicU8::from_ptr(at) };
        Some(byte.load(std::sync::atomic::Ordering::Relaxed))
    }

    /// Gives the address of `bytes` aligned bytes at `offset`; a mapping starts on a page, so the offset decides the alignment.
    fn place(&self, offset: usize, bytes: usize) -> Option<*mut u8> {
        let end = offset.checked_add(bytes)?;
        (offset.is_multiple_of(bytes) && end <= self.len())
            .then(|| self.0.as_mut_ptr().wrapping_add(offset))
    }
}
