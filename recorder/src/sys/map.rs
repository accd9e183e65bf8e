//! Mappings that live as long as the process: parts of the ring file, a ring mapped twice in a row,
//! and the page that a fork clears.

use std::io::{self, Error};
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A mapping that is never unmapped while its process records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a Map is an address range that stays mapped. Every access uses atomics, or a range that
// has one agreed owner.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// Maps `bytes` bytes of a file from `offset` on, shared with other processes.
    pub(crate) fn shared(fd: RawFd, offset: usize, bytes: usize) -> io::Result<Map> {
        map_at(ptr::null_mut(), bytes, libc::MAP_SHARED, fd, offset)
    }

    /// Maps `bytes` bytes of a file from `offset` on twice in a row. Any range of up to `bytes`
    /// bytes, even one that wraps around, is then contiguous.
    pub(crate) fn shared_twice(fd: RawFd, offset: usize, bytes: usize) -> io::Result<Map> {
        let whole = map_anonymous(2 * bytes, libc::MAP_NORESERVE)?;
        for copy in 0..2 {
            // SAFETY: within the range just reserved.
            let at = unsafe { whole.base.as_ptr().add(copy * bytes) };
            let flags = libc::MAP_SHARED | libc::MAP_FIXED;
            map_at(at.cast(), bytes, flags, fd, offset).inspect_err(|_| whole.unmap())?;
        }
        Ok(whole)
    }

    /// Maps a page that reads as zero in the child of a fork.
    pub(crate) fn wiped_by_fork() -> io::Result<Map> {
        const WIPE_ON_FORK: libc::c_int = 18;
        let bytes = super::page_bytes();
        let page = map_anonymous(bytes, 0)?;
        // SAFETY: exactly the mapping just created.
        let done = unsafe { libc::madvise(page.base.as_ptr().cast(), bytes, WIPE_ON_FORK) };
        super::fd::check(done).inspect_err(|_| page.unmap())?;
        Ok(page)
    }

    /// Returns the part of the mapping with `bytes` bytes from byte `at` on. Panics if it is not
    /// inside the mapping.
    #[inline(always)]
    pub(crate) fn part(self, at: usize, bytes: usize) -> Map {
        if at > self.bytes || bytes > self.bytes - at {
            out_of_range(at, bytes);
        }
        // SAFETY: checked to be inside the mapping.
        let base = unsafe { self.base.add(at) };
        Map { base, bytes }
    }

    /// Returns all bytes of the mapping from byte `at` on, or `None` if that is outside the
    /// mapping.
    ///
    /// # Safety
    ///
    /// Nothing else in this process reads or writes these bytes meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn from<'a>(self, at: usize) -> Option<&'a mut [u8]> {
        let len = self.bytes.checked_sub(at)?;
        // SAFETY: checked to be inside the mapping.
        let start = unsafe { self.base.add(at) };
        // SAFETY: inside the mapping, mapped while its process records, and used only by the
        // caller.
        Some(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) })
    }

    /// Returns the size of the mapping in bytes.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Removes the mapping from the address space. Nothing may use it any more.
    pub(crate) fn unmap(self) {
        // SAFETY: the range belongs to this mapping.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }

    /// Returns the address of the byte at offset `at` of the mapping. Panics if it is outside.
    #[inline(always)]
    pub(crate) fn at(&self, at: usize) -> *mut u8 {
        if at >= self.bytes {
            out_of_range(at, 1);
        }
        // SAFETY: checked to be inside the mapping.
        unsafe { self.base.as_ptr().add(at) }
    }

    /// Returns the 64-bit word at offset `at` of the mapping. Panics if the offset is unaligned or
    /// outside.
    #[inline(always)]
    pub(crate) fn u64_at(&self, at: usize) -> &'static AtomicU64 {
        if !at.is_multiple_of(8) || at + 8 > self.bytes {
            out_of_range(at, 8);
        }
        // SAFETY: aligned, inside, mapped for the life of the process, and only ever accessed as an
        // atomic.
        unsafe { AtomicU64::from_ptr(self.at(at).cast()) }
    }

    /// Returns the 32-bit word at offset `at` of the mapping. Panics if the offset is unaligned or
    /// outside.
    #[inline(always)]
    pub(crate) fn u32_at(&self, at: usize) -> &'static AtomicU32 {
        if !at.is_multiple_of(4) || at + 4 > self.bytes {
            out_of_range(at, 4);
        }
        // SAFETY: aligned, inside, mapped for the life of the process, and only ever accessed as an
        // atomic.
        unsafe { AtomicU32::from_ptr(self.at(at).cast()) }
    }

    /// Reads the byte at offset `at` of the mapping.
    pub(crate) fn byte(&self, at: usize) -> u8 {
        // SAFETY: `at` checks the offset. A byte has no invalid value.
        unsafe { self.at(at).read_volatile() }
    }

    /// Copies bytes into the mapping, starting at offset `at`. Panics if they do not fit.
    pub(crate) fn copy_in(&self, at: usize, bytes: &[u8]) {
        if at + bytes.len() > self.bytes {
            out_of_range(at, bytes.len());
        }
        // SAFETY: checked to be inside the mapping.
        let room = unsafe { self.base.as_ptr().add(at) };
        // SAFETY: checked to fit. The caller owns this part of the mapping.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), room, bytes.len()) };
    }
}

/// Panics for an access outside the mapping. It takes the numbers by value: an `assert!` with a
/// message would store its format arguments in memory at every access.
#[cold]
#[inline(never)]
fn out_of_range(at: usize, bytes: usize) -> ! {
    panic!("{bytes} bytes at offset {at} are outside the mapping")
}

/// `N` bytes of a mapping. Accesses inside this range need no bounds check at run time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<const N: usize>(NonNull<u8>);

impl<const N: usize> Part<N> {
    /// Returns the `N` bytes from offset `at` of a mapping. Panics if they are not inside it.
    #[inline(always)]
    pub(crate) fn new(map: Map, at: usize) -> Part<N> {
        Part(map.part(at, N).base)
    }

    #[inline(always)]
    pub(crate) fn map(self) -> Map {
        Map {
            base: self.0,
            bytes: N,
        }
    }
}

/// Address space in bytes that is left to the host if it is limited. A failed allocation ends most
/// programs, no matter who used up the space. The C library may take 64 MiB for the heap of a
/// thread that the host starts later.
const HOST_RESERVE_BYTES: usize = 72 << 20;

/// Returns an error if mapping `bytes` more bytes would leave the host too little of a limited
/// address space. Computes this instead of trying a mapping: during the attempt, an allocation of
/// the host could fail.
pub(super) fn check_address_space(bytes: usize) -> io::Result<()> {
    let limit = super::fd::limit(libc::RLIMIT_AS);
    if limit == libc::RLIM_INFINITY {
        return Ok(());
    }
    let wanted = bytes.saturating_add(HOST_RESERVE_BYTES);
    let used = used_pages()?.saturating_mul(super::page_bytes());
    let after = u64::try_from(used.saturating_add(wanted)).unwrap_or(u64::MAX);
    if after <= limit {
        Ok(())
    } else {
        Err(super::memory::out_of_memory())
    }
}

/// Returns the address space that the process uses, in pages.
fn used_pages() -> io::Result<usize> {
    let mut text = [0; 128];
    let read = super::fd::read_whole(c"/proc/self/statm", &mut text)?;
    let digits = text[..read].iter().take_while(|byte| byte.is_ascii_digit());
    let number = |all: usize, digit: &u8| all.checked_mul(10)?.checked_add((digit - b'0').into());
    let pages = digits
        .into_iter()
        .try_fold(0, number)
        .filter(|pages| *pages > 0);
    pages.ok_or_else(super::memory::out_of_memory)
}

/// Maps `bytes` bytes of private memory that belongs to no file.
fn map_anonymous(bytes: usize, flags: libc::c_int) -> io::Result<Map> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    map_at(ptr::null_mut(), bytes, flags, -1, 0)
}

fn map_at(
    at: *mut libc::c_void,
    bytes: usize,
    flags: libc::c_int,
    fd: RawFd,
    offset: usize,
) -> io::Result<Map> {
    if at.is_null() {
        check_address_space(bytes)?;
    }
    let offset =
        libc::off_t::try_from(offset).map_err(|_| Error::from_raw_os_error(libc::EOVERFLOW))?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: either the kernel chooses the place, or (MAP_FIXED) it is in a range we reserved.
    let base = unsafe { libc::mmap(at, bytes, access, flags, fd, offset) };
    if base == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    let base = NonNull::new(base.cast()).ok_or_else(|| Error::from_raw_os_error(libc::ENOMEM))?;
    Ok(Map { base, bytes })
}
