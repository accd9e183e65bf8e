//! A read-only mapping of a file that another process may be changing. Numbers are read as single atomic loads.
#![expect(
    unsafe_code,
    reason = "the writer publishes through shared memory; reading it atomically takes a mapping and raw atomics"
)]

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Acquire};

use memmap2::MmapRaw;

/// A shared mapping of a whole file, with the length that it had when it was mapped.
#[derive(Debug)]
pub(super) struct Mapping(MmapRaw);

impl Mapping {
    /// Maps `file`. Reads would fault if the file were shortened later, which the tests never do.
    pub(super) fn new(file: &File) -> io::Result<Self> {
        memmap2::MmapOptions::new()
            .map_raw_read_only(file)
            .map(Mapping)
    }

    /// Returns the length in bytes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Loads the aligned u64 at `offset`, or returns `None` outside the file.
    pub(super) fn u64_at(&self, offset: usize) -> Option<u64> {
        let at = self.address(offset, 8)?;
        // SAFETY: `address` checked that 8 aligned bytes of the live mapping start there. All reads of them are atomic.
        let number = unsafe { AtomicU64::from_ptr(at.cast()) };
        Some(number.load(Acquire))
    }

    /// Loads the aligned u32 at `offset`, or returns `None` outside the file.
    pub(super) fn u32_at(&self, offset: usize) -> Option<usize> {
        let at = self.address(offset, 4)?;
        // SAFETY: `address` checked that 4 aligned bytes of the live mapping start there. All reads of them are atomic.
        let number = unsafe { AtomicU32::from_ptr(at.cast()) };
        usize::try_from(number.load(Acquire)).ok()
    }

    /// Copies `len` bytes from `offset`, or returns `None` if they are not all in the file.
    pub(super) fn copy(&self, offset: usize, len: usize) -> Option<Vec<u8>> {
        let end = offset.checked_add(len).filter(|end| *end <= self.len())?;
        (offset..end).map(|at| self.byte_at(at)).collect()
    }

    fn byte_at(&self, offset: usize) -> Option<u8> {
        let at = self.address(offset, 1)?;
        // SAFETY: `address` checked that the live mapping contains the byte.
        let byte = unsafe { AtomicU8::from_ptr(at) };
        Some(byte.load(std::sync::atomic::Ordering::Relaxed))
    }

    /// Returns the address of `bytes` aligned bytes at `offset`. A mapping starts on a page, so the offset determines the alignment.
    fn address(&self, offset: usize, bytes: usize) -> Option<*mut u8> {
        let end = offset.checked_add(bytes)?;
        (offset.is_multiple_of(bytes) && end <= self.len())
            .then(|| self.0.as_mut_ptr().wrapping_add(offset))
    }
}
