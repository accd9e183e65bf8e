//! How the C library keeps the heap.
#![cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "no safe call says how many arenas there may be")
)]

/// Lets all threads share two arenas; call it before there are threads. glibc makes one for each thread otherwise, up to eight for each core, and keeps in
/// each what its thread has freed.
pub(crate) fn share() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: it only sets a number that the allocator reads, and no other thread runs yet.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) }; // fails for no small number
    }
}
