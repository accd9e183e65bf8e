//! Memory that is needed soon, asked for ahead: a processor waits for it as long as it takes to write a line.
#![cfg_attr(
    all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")),
    expect(unsafe_code, reason = "no safe way to ask for memory ahead")
)]

/// Bytes that come at once.
pub(super) const LINE: usize = 64;

/// Asks for the bytes around the first one; nothing but time depends on it.
#[inline(always)]
pub(super) fn ask_for<T>(place: &T) {
    let place = std::ptr::from_ref(place).cast::<i8>();
    // SAFETY: it reads nothing and takes any address.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place);
    }
    // SAFETY: the instruction reads nothing, takes any address and changes no register.
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{place}]", place = in(reg) place, options(nostack, preserves_flags, readonly));
    }
    let _ = place;
}
