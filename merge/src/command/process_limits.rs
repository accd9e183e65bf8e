//! Limits of the process: how many files it may have open, and how many heaps the C library keeps for it.
#![cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "no safe call says how many arenas there may be")
)]

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit on open files as far as the caller's hard limit allows: each earlier run of a directory takes some. The soft limit is low for
/// programs that use `select`, as this one does not.
pub(crate) fn raise_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If that is refused, files that cannot be opened are reported by their paths.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Lets all threads share two arenas of the heap; call it before there are threads. Otherwise glibc makes one for each thread, up to eight for each core,
/// and keeps in each what its thread has freed.
pub(crate) fn share_heap() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: it only sets a number that the allocator reads, and no other thread runs yet.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) }; // fails for no small number
    }
}
