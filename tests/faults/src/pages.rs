//! Pages of another size, as kernels on arm64 servers have them: `sysconf` returns `SA_TEST_PAGE_BYTES`, and mappings that such a kernel would refuse or
//! round to whole pages are refused.

use libc::{c_int, c_long, c_void, off_t, size_t};
use std::sync::OnceLock;

/// Bytes of a page, if they are asked to be others than the kernel's.
fn page_bytes() -> Option<usize> {
    static PAGE: OnceLock<Option<usize>> = OnceLock::new();
    *PAGE.get_or_init(|| std::env::var("SA_TEST_PAGE_BYTES").ok()?.parse().ok())
}

/// `sysconf` with the page size of the other kernel.
// SAFETY: defined with exactly the C library's type, for the process that asked for it.
#[unsafe(no_mangle)]
pub extern "C" fn sysconf(name: c_int) -> c_long {
    if name == libc::_SC_PAGESIZE
        && let Some(page) = page_bytes()
    {
        return c_long::try_from(page).unwrap_or(-1);
    }
    let next = next!(sysconf, fn(c_int) -> c_long);
    // SAFETY: the caller's argument, unchanged.
    unsafe { next(name) }
}

/// Maps under the rules of the other kernel: offsets and addresses are multiples of its pages. A fixed mapping must also fill whole pages, because it would
/// replace the rest of its last page.
///
/// # Safety
/// As for the C library's.
pub(crate) unsafe fn mmap(
    at: *mut c_void,
    bytes: size_t,
    access: c_int,
    flags: c_int,
    fd: c_int,
    from: off_t,
) -> *mut c_void {
    let map =
        |at: *mut c_void, bytes: size_t, access: c_int, flags: c_int, fd: c_int, from: off_t| {
            // SAFETY: the caller's arguments, at a place that the caller or `room` has chosen.
            let map = unsafe { libc::syscall(libc::SYS_mmap, at, bytes, access, flags, fd, from) };
            map as *mut c_void
        };
    let Some(page) = page_bytes() else {
        return map(at, bytes, access, flags, fd, from);
    };
    let is_fixed = flags & libc::MAP_FIXED != 0;
    let on_page = usize::try_from(from).is_ok_and(|from| from.is_multiple_of(page));
    let is_whole = at.addr().is_multiple_of(page) && bytes.is_multiple_of(page);
    if !on_page || is_fixed && !is_whole {
        crate::calls::set_errno(libc::EINVAL);
        return libc::MAP_FAILED;
    }
    if is_fixed {
        return map(at, bytes, access, flags, fd, from);
    }
    // A range that begins on a page is reserved; what lies behind it stays so.
    let nothing = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let all = map(
        std::ptr::null_mut(),
        bytes + page,
        libc::PROT_NONE,
        nothing,
        -1,
        0,
    );
    if all == libc::MAP_FAILED {
        return all;
    }
    let before = all.addr().next_multiple_of(page) - all.addr();
    if before > 0 {
        // SAFETY: the range just reserved, up to where the room begins.
        unsafe { libc::munmap(all, before) };
    }
    let room = all.wrapping_byte_add(before);
    map(room, bytes, access, flags | libc::MAP_FIXED, fd, from)
}
