//! Limits of the process: the number of open files, and the number of heaps in the C library.
#![cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "no safe call says how many arenas there may be")
)]

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit on open files to the hard limit, because each earlier run of a directory needs
/// some. The soft limit is low for the sake of programs that use `select`, which this one does not.
pub(crate) fn raise_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If that fails, files that cannot be opened are reported by their paths.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Makes all threads share two heap arenas. Must be called before threads are created. Otherwise
/// glibc creates an arena for each thread, up to eight for each core, and each one keeps the memory
/// that its thread has freed.
pub(crate) fn share_heap() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the call only sets a number that the allocator reads, and no other thread runs
        // yet.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) }; // cannot fail for a small number
    }
}
