//! Descriptors. Ours have numbers of 512 and up, out of the host's way, and are checked before use
//! because a host may close and reuse any number.

use std::ffi::{CStr, CString, OsStr};
use std::io::{self, Error};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::read::retry_interrupted;

/// Smallest descriptor number that the recorder uses.
const MIN_NUMBER: RawFd = 512;
/// Range above that minimum in which a random number is chosen. Between our check of a descriptor
/// and its use, the host may give the number to a file of its own. With so many numbers it will
/// hardly do so by chance.
const SPREAD: u64 = 4096;

/// Returns a random descriptor number in the recorder's range, at which the search for a free one
/// starts.
fn random_high_number() -> RawFd {
    let spread = crate::sys::random() % SPREAD;
    MIN_NUMBER + RawFd::try_from(spread).unwrap_or(0)
}

/// Duplicates a descriptor to a number far from the host's own, with close-on-exec. Returns the new
/// number, or -1 on failure. Uses a number below the usual range only if the limit leaves no other.
fn duplicate_high(fd: RawFd) -> RawFd {
    let from = |least: RawFd| {
        // SAFETY: F_DUPFD_CLOEXEC takes an integer. A closed number is an error.
        unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, least) }
    };
    match from(random_high_number()) {
        -1 => from(MIN_NUMBER),
        number => number,
    }
}

/// Identity of the file that a descriptor must still refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// A file of ours and the number of its descriptor. The host may close the number at any time and
/// use it for a file of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    pub(crate) number: RawFd,
    pub(crate) id: FileId,
}

impl Numbered {
    /// Returns the status of the file, or the error `EBADF` if the descriptor number now belongs to
    /// another file.
    pub(crate) fn status(self) -> io::Result<Status> {
        match status(self.number)? {
            status if status.id == self.id => Ok(status),
            _ => Err(Error::from_raw_os_error(libc::EBADF)),
        }
    }

    /// Closes the descriptor number if it still refers to our file.
    pub(crate) fn close(self) {
        if self.status().is_ok() {
            // SAFETY: the number refers to our file.
            unsafe { libc::close(self.number) };
        }
    }
}

/// The status of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) id: FileId,
    pub(crate) size: u64,
    /// Size of the file's blocks on disk, including reserved blocks beyond its end.
    pub(crate) disk_bytes: u64,
    pub(crate) mode: u32,
    pub(crate) owner: u32,
    pub(crate) links: u64,
    /// Time of the last change of its contents, in ns since 1970.
    pub(crate) modified_ns: u64,
    /// Time of the last change of its contents or attributes, in ns since 1970.
    changed_ns: u64,
}

impl Status {
    /// Returns true if the file is a plain file.
    pub(crate) fn is_regular(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }
}

/// Returns the status of the open file with this descriptor number.
pub(crate) fn status(fd: RawFd) -> io::Result<Status> {
    status_at(fd, c"", libc::AT_EMPTY_PATH)
}

/// Returns the status of the file at a path, without following a symlink. Asks the C library
/// instead of the kernel (unlike [`status_at`]), because tests replace the C library's function
/// with one that hangs.
pub(crate) fn path_status(path: &Path) -> io::Result<Status> {
    let found = std::fs::symlink_metadata(path)?;
    Ok(Status {
        id: FileId {
            device: found.dev(),
            inode: found.ino(),
        },
        size: found.size(),
        disk_bytes: found.blocks().saturating_mul(512),
        mode: found.mode(),
        owner: found.uid(),
        links: found.nlink(),
        modified_ns: time_ns(found.mtime(), found.mtime_nsec()),
        changed_ns: time_ns(found.ctime(), found.ctime_nsec()),
    })
}

/// Combines the seconds and ns of a file's time to ns since 1970. Returns the nearest value that
/// fits if the result does not.
fn time_ns(seconds: i64, ns: i64) -> u64 {
    let whole_ns = number(seconds).saturating_mul(1_000_000_000);
    whole_ns.saturating_add(number(ns))
}

/// Converts a number from the kernel to an unsigned one; negative values, which do not occur,
/// become 0.
fn number(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Returns the status of the file at a path relative to the directory `dir`, with the flags of an
/// `fstatat` call.
///
/// Another preloaded library may replace the C library's `fstat` and `stat`, and crash if it is
/// called after its own destructor, as libfaketime does. The recorder writes its last lines that
/// late, so it makes the system call itself.
pub(super) fn status_at(dir: RawFd, path: &CStr, flags: libc::c_int) -> io::Result<Status> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::zeroed();
    let place = stat.as_mut_ptr();
    // SAFETY: the path is a C string, and the buffer is the kernel's stat on every 64-bit Linux. A
    // bad number is an error.
    let done = unsafe { libc::syscall(libc::SYS_newfstatat, dir, path.as_ptr(), place, flags) };
    check(done)?;
    // SAFETY: zeroed before and filled by the kernel.
    let stat = unsafe { stat.assume_init() };
    Ok(Status {
        id: FileId {
            device: stat.st_dev,
            inode: stat.st_ino,
        },
        size: number(stat.st_size),
        disk_bytes: number(stat.st_blocks).saturating_mul(512),
        mode: stat.st_mode,
        owner: stat.st_uid,
        #[allow(
            clippy::useless_conversion,
            reason = "the type is u64 here and u32 on aarch64"
        )]
        links: u64::from(stat.st_nlink),
        modified_ns: time_ns(stat.st_mtime, stat.st_mtime_nsec),
        changed_ns: time_ns(stat.st_ctime, stat.st_ctime_nsec),
    })
}

/// Moves a descriptor to a number far from the host's own, with close-on-exec. If the limit forbids
/// that, the descriptor keeps its number.
pub(crate) fn move_high(fd: OwnedFd) -> OwnedFd {
    let moved = duplicate_high(fd.as_raw_fd());
    if moved < 0 {
        return fd;
    }
    // SAFETY: a new descriptor that nothing else owns.
    unsafe { OwnedFd::from_raw_fd(moved) }
}

/// Tries `flock(LOCK_EX)` without waiting. Returns false if another open file holds the lock.
pub(crate) fn try_lock(fd: RawFd) -> bool {
    // SAFETY: flock takes a descriptor number. A bad one is an error.
    unsafe { libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Releases the lock that [`try_lock`] took.
pub(crate) fn unlock(fd: RawFd) {
    // SAFETY: flock takes a descriptor number. A bad one is an error.
    unsafe { libc::flock(fd, libc::LOCK_UN) };
}

/// Writes several byte slices one after the other with a single `writev` call. Returns the number
/// of bytes written, which may be less than their total length.
pub(crate) fn write_vectored<const N: usize>(fd: RawFd, parts: [&[u8]; N]) -> io::Result<usize> {
    let slices = parts.map(io::IoSlice::new);
    let count = libc::c_int::try_from(N).unwrap_or(0);
    retry_interrupted(|| {
        // SAFETY: IoSlice has the layout of iovec, and each is valid for the call.
        let written = unsafe { libc::writev(fd, slices.as_ptr().cast(), count) };
        usize::try_from(written).map_err(|_| Error::last_os_error())
    })
}

/// Writes a whole text into an empty file. Returns an error if only a part of it is written.
pub(crate) fn write_whole(fd: RawFd, text: &[u8]) -> io::Result<()> {
    if text.len() as u64 > file_size_limit() {
        return Err(Error::from_raw_os_error(libc::EFBIG));
    }
    match write_vectored(fd, [text])? {
        written if written == text.len() => Ok(()),
        _ => Err(Error::from_raw_os_error(libc::ENOSPC)),
    }
}

/// Returns the largest size in bytes that a file of this process may have. A write beyond it raises
/// a signal that kills the process.
pub(crate) fn file_size_limit() -> u64 {
    limit(libc::RLIMIT_FSIZE)
}

/// Returns this process's soft limit on a resource, or infinity if it cannot be read.
pub(crate) fn limit(resource: libc::__rlimit_resource_t) -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid rlimit to fill.
    let done = unsafe { libc::getrlimit(resource, &mut limit) };
    match done {
        0 => limit.rlim_cur,
        _ => libc::RLIM_INFINITY,
    }
}

/// Allocates disk blocks for `bytes` bytes of a file from offset `from`, so that later stores into
/// a shared map of them cannot fail. The file grows if needed.
pub(crate) fn allocate(fd: RawFd, from: usize, bytes: usize) -> io::Result<()> {
    let (from, bytes) = (offset(from as u64)?, offset(bytes as u64)?);
    let end = u64::try_from(from + bytes).unwrap_or(u64::MAX);
    if end > file_size_limit() {
        return Err(Error::from_raw_os_error(libc::EFBIG));
    }
    // SAFETY: fallocate takes integers. A bad descriptor is an error.
    check(unsafe { libc::fallocate(fd, 0, from, bytes) })
}

/// Reserves disk blocks for `bytes` bytes of a file from offset `from`, without changing the file's
/// size. The caller checks the size limit.
pub(crate) fn reserve(fd: RawFd, from: u64, bytes: u64) -> io::Result<()> {
    let (from, bytes) = (offset(from)?, offset(bytes)?);
    // SAFETY: fallocate takes integers. A bad descriptor is an error.
    check(unsafe { libc::fallocate(fd, libc::FALLOC_FL_KEEP_SIZE, from, bytes) })
}

/// Sets the size of a file to `bytes` bytes. The caller checks the size limit if the file grows.
pub(crate) fn set_end(fd: RawFd, bytes: u64) -> io::Result<()> {
    // SAFETY: ftruncate takes integers. A bad descriptor is an error.
    check(unsafe { libc::ftruncate(fd, offset(bytes)?) })
}

/// Sets the size of a file in memory to `bytes` bytes. Returns an error if the size limit forbids
/// that.
pub(crate) fn resize(fd: RawFd, bytes: usize) -> io::Result<()> {
    if bytes as u64 > file_size_limit() {
        return Err(Error::from_raw_os_error(libc::EFBIG));
    }
    set_end(fd, bytes as u64)
}

/// Converts an offset or a size in bytes to `off_t`, the type that system calls take. Returns an
/// error if it is too large.
fn offset(bytes: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(bytes).map_err(|_| Error::from_raw_os_error(libc::EFBIG))
}

const EXT4: i64 = 0xef53;
const XFS: i64 = 0x5846_5342;
const TMPFS: i64 = 0x0102_1994;
const OVERLAY: i64 = 0x794c_7630;

/// Returns true if the file is on a file system where a store into a shared map of allocated blocks
/// cannot run out of disk space (no copy-on-write, no remote server).
pub(crate) fn holds_shared_maps(fd: RawFd) -> bool {
    file_system(fd).is_some_and(|kind| [EXT4, XFS, TMPFS, OVERLAY].contains(&kind))
}

/// Returns true if a file is directly on ext4.
pub(crate) fn is_on_ext4(fd: RawFd) -> bool {
    file_system(fd) == Some(EXT4)
}

fn file_system(fd: RawFd) -> Option<i64> {
    let mut stat = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the buffer is a statfs.
    let done = unsafe { libc::fstatfs(fd, stat.as_mut_ptr()) };
    // SAFETY: zeroed before and filled by fstatfs.
    let kind = unsafe { stat.assume_init() }.f_type;
    (done == 0).then_some(kind)
}

/// Creates an anonymous file in memory.
pub(crate) fn memory_file() -> io::Result<OwnedFd> {
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(c"sa-profile".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: a new descriptor that nothing else owns.
    unsafe { owned(fd) }
}

/// Opens the file at `path` for appending, if it still has the identity `id`.
pub(crate) fn open_again(path: &Path, id: FileId) -> io::Result<Numbered> {
    open_if_same(path, id, libc::O_RDWR | libc::O_APPEND)
}

/// Returns true if an error means that our file is no longer at its path.
pub(crate) fn is_gone(error: &Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::ESTALE)
    )
}

/// Returns at most `bytes` bytes from the start of the file at `path`, if it has the identity `id`.
/// Uses `pread`: if the host has taken over the descriptor number, the position in its file does
/// not move.
pub(crate) fn read_start(path: &Path, id: FileId, bytes: usize) -> io::Result<Vec<u8>> {
    let file = open_if_same(path, id, libc::O_RDONLY)?;
    let mut start = vec![0; bytes];
    // SAFETY: the buffer is valid for its length. A closed number is an error.
    let result = unsafe { libc::pread(file.number, start.as_mut_ptr().cast(), bytes, 0) };
    let read = usize::try_from(result).map_err(|_| Error::last_os_error());
    file.close();
    start.truncate(read?);
    Ok(start)
}

/// Reads a small kernel file into `room`, as far as it fits. Returns the number of bytes read.
pub(super) fn read_whole(path: &CStr, room: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the path is a C string.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    // SAFETY: a new descriptor that nothing else owns.
    let file = unsafe { owned(fd) }?;
    // SAFETY: the buffer is valid for its length.
    let read = unsafe { libc::read(file.as_raw_fd(), room.as_mut_ptr().cast(), room.len()) };
    usize::try_from(read).map_err(|_| Error::last_os_error())
}

/// Opens the file at `path` if it has the identity `id`, at a number far from the host's own. Any
/// other file at that path is closed again. A low number is in use for a moment, which the host may
/// close and reuse meanwhile, so no number is closed without a check.
fn open_if_same(path: &Path, id: FileId, flags: libc::c_int) -> io::Result<Numbered> {
    let path = c_name(path.as_os_str())?;
    let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    // SAFETY: the path is a C string.
    let number = unsafe { libc::open(path.as_ptr(), flags | libc::O_NOCTTY) };
    check(number)?;
    let low = Numbered {
        id: status(number)?.id,
        number,
    };
    if low.id != id {
        low.close();
        return Err(Error::from_raw_os_error(libc::ESTALE));
    }
    let high = Numbered {
        number: duplicate_high(number),
        id,
    };
    if high.number < 0 {
        return Ok(low);
    }
    low.close();
    match high.status() {
        Ok(_) => Ok(high),
        Err(_) => Err(Error::from_raw_os_error(libc::EBADF)), // the number now belongs to a file of the host
    }
}

/// Turns an owned descriptor into a plain number, which nothing closes automatically, and moves it
/// far from the host's own. A plain number is used because the host may close it at any time.
pub(crate) fn into_number(fd: OwnedFd) -> RawFd {
    move_high(fd).into_raw_fd()
}

/// Turns the result of a system call into an error if it is negative.
pub(super) fn check(result: impl Into<i64>) -> io::Result<()> {
    if result.into() < 0 {
        Err(Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Returns the descriptor that a system call has opened, or the call's error.
///
/// # Safety
///
/// Unless it is negative, `fd` is an open descriptor that nothing else owns.
pub(super) unsafe fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    check(fd)?;
    // SAFETY: the caller guarantees it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Converts a name or path to a C string.
pub(super) fn c_name(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(|_| Error::from_raw_os_error(libc::EINVAL))
}
