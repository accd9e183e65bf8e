//! Preloaded into a process, this library gives it the pages of a kernel built for larger ones: `SA_TEST_PAGE_BYTES` is the page size that `sysconf` tells,
//! and what such a kernel would refuse, or round to whole pages, is refused. arm64 kernels have pages of 4, 16 or 64 KiB.
#![expect(unsafe_code, reason = "it stands in the place of the C library")]

use libc::{c_int, c_long, c_void, off_t, size_t};
use std::sync::OnceLock;

/// Bytes of a page: what the variable says, else the kernel's.
fn page_bytes() -> usize {
    static PAGE: OnceLock<usize> = OnceLock::new();
    *PAGE.get_or_init(|| {
        let asked = std::env::var("SA_TEST_PAGE_BYTES").ok();
        asked
            .and_then(|bytes| bytes.parse().ok())
            .unwrap_or_else(|| {
                // SAFETY: getauxval reads a constant of the process.
                let kernel = unsafe { libc::getauxval(libc::AT_PAGESZ) };
                usize::try_from(kernel).unwrap_or(4096)
            })
    })
}

/// `sysconf` with the page size of the other kernel.
// SAFETY: defined with exactly the C library's type, for the process that asked for it.
#[unsafe(no_mangle)]
pub extern "C" fn sysconf(name: c_int) -> c_long {
    if name == libc::_SC_PAGESIZE {
        return c_long::try_from(page_bytes()).unwrap_or(-1);
    }
    // SAFETY: the name is NUL-terminated.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"sysconf".as_ptr()) };
    // SAFETY: the C library defines the symbol with exactly this type.
    let next = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(c_int) -> c_long>(next) };
    next(name)
}

/// `mmap` under the rules of the other kernel: an offset must lie on a page, and so does what it returns. A fixed mapping must also fill whole pages, for
/// there it would take away what else lies in its last one.
///
/// # Safety
/// As for the C library's.
// SAFETY: defined with exactly the C library's type, for the process that asked for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    bytes: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    let fixed = flags & libc::MAP_FIXED != 0;
    let on_page = usize::try_from(offset).is_ok_and(is_whole);
    if !on_page || fixed && !(is_whole(at.addr()) && is_whole(bytes)) {
        // SAFETY: the address of this thread's errno.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: it is writable.
        unsafe { *errno = libc::EINVAL };
        return libc::MAP_FAILED;
    }
    if fixed {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe { map(at, bytes, protection, flags, fd, offset) };
    }
    let room = room(bytes);
    if room == libc::MAP_FAILED {
        return room;
    }
    // SAFETY: the place was free and is now reserved for this.
    unsafe { map(room, bytes, protection, flags | libc::MAP_FIXED, fd, offset) }
}

fn is_whole(bytes: usize) -> bool {
    bytes.is_multiple_of(page_bytes())
}

/// Reserves a range that begins on a page.
fn room(bytes: usize) -> *mut c_void {
    let nothing = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let (null, page) = (std::ptr::null_mut(), page_bytes());
    // SAFETY: the kernel chooses the place.
    let all = unsafe { map(null, bytes + page, libc::PROT_NONE, nothing, -1, 0) };
    if all == libc::MAP_FAILED {
        return all;
    }
    let before = all.addr().next_multiple_of(page) - all.addr();
    let room = all.wrapping_byte_add(before);
    if before > 0 {
        // SAFETY: the range just reserved, up to where the room begins.
        unsafe { libc::munmap(all, before) };
    }
    room // what lies behind it stays reserved
}

/// The kernel's `mmap`.
unsafe fn map(
    at: *mut c_void,
    bytes: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: the caller's arguments, unchanged.
    let mapped = unsafe { libc::syscall(libc::SYS_mmap, at, bytes, protection, flags, fd, offset) };
    mapped as *mut c_void
}

/// The same by its other name.
///
/// # Safety
/// As for [`mmap`].
// SAFETY: defined with exactly the C library's type, for the process that asked for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    at: *mut c_void,
    bytes: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: the caller's arguments, unchanged.
    unsafe { mmap(at, bytes, protection, flags, fd, offset) }
}
