//! The `dlsym` behind ours.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The type of `dlsym`.
pub(crate) type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The version that `dlsym` has had since glibc was first on this architecture: with it the search never fails, so that nothing is allocated, which an
/// allocator may not be ready for that asks for its own functions.
const FIRST_VERSION: &CStr = if cfg!(target_arch = "aarch64") {
    c"GLIBC_2.17"
} else {
    c"GLIBC_2.2.5"
};

/// It, once it was looked for.
pub(crate) static BEHIND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Finds nothing: for a C library without a `dlsym`, where nobody can have asked for one.
unsafe extern "C" fn none(_: *mut c_void, _: *const c_char) -> *mut c_void {
    ptr::null_mut()
}

/// The `dlsym` behind ours.
pub(crate) fn real_dlsym() -> Dlsym {
    let mut real = BEHIND.load(Ordering::Acquire);
    if real.is_null() {
        // SAFETY: C strings. By version only the C library's own is found: one of another interposer has none.
        let of_libc =
            unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), FIRST_VERSION.as_ptr()) };
        // SAFETY: null, or the C library's function of this type.
        let of_libc = unsafe { std::mem::transmute::<*mut c_void, Option<Dlsym>>(of_libc) };
        // SAFETY: as any caller of it. From here it finds the first one behind this library.
        let next = of_libc.map(|dlsym| unsafe { dlsym(libc::RTLD_NEXT, c"dlsym".as_ptr()) });
        let next = next.filter(|next| !next.is_null());
        real = next.unwrap_or(none as *const () as *mut c_void);
        BEHIND.store(real, Ordering::Release);
    }
    // SAFETY: the C library's function of this type, or `none`.
    unsafe { std::mem::transmute::<*mut c_void, Dlsym>(real) }
}
