//! Simulates another page size, as on arm64 servers: `sysconf` returns `SA_TEST_PAGE_BYTES`, and mappings fail if such a kernel would refuse them or
//! round them to whole pages.

use libc::{c_int, c_long, c_void, off_t, size_t};
use std::sync::OnceLock;

/// Returns the simulated page size, if one is set.
fn page_bytes() -> Option<usize> {
    static PAGE: OnceLock<Option<usize>> = OnceLock::new();
    *PAGE.get_or_init(|| std::env::var("SA_TEST_PAGE_BYTES").ok()?.parse().ok())
}

/// Replaces `sysconf` to return the simulated page size.
// SAFETY: has the C library's type, and is only exported to processes that preload it.
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

/// Maps memory under the rules of the simulated kernel: offsets and addresses are multiples of its pages. A fixed mapping must also cover whole pages, because it
/// would otherwise replace the rest of its last page.
///
/// # Safety
/// As for the C library's function.
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
            // SAFETY: these are the caller's arguments, at an address that the caller chose or that was reserved below.
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
    // Reserves a range that starts on a page. The part after the mapping stays reserved.
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
        // SAFETY: this is the part of the reserved range before the mapping.
        unsafe { libc::munmap(all, before) };
    }
    let room = all.wrapping_byte_add(before);
    map(room, bytes, access, flags | libc::MAP_FIXED, fd, from)
}
