//! The real `dlsym`: the next one after ours.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The type of `dlsym`.
pub(crate) type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// Version of `dlsym` in the first glibc for this architecture. A search with it never fails and so never allocates. An allocator that looks up its own
/// functions may not be ready to allocate yet.
const FIRST_VERSION: &CStr = if cfg!(target_arch = "aarch64") {
    c"GLIBC_2.17"
} else {
    c"GLIBC_2.2.5"
};

/// Address of the real `dlsym`; null until the first call of `real_dlsym`.
pub(crate) static REAL_DLSYM: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Returns null, as a `dlsym` that finds nothing. Used with a C library without `dlsym`, where no caller can exist.
unsafe extern "C" fn find_nothing(_: *mut c_void, _: *const c_char) -> *mut c_void {
    ptr::null_mut()
}

/// Returns the real `dlsym`: the next one after ours in the order in which libraries are searched.
pub(crate) fn real_dlsym() -> Dlsym {
    let mut real = REAL_DLSYM.load(Ordering::Acquire);
    if real.is_null() {
        // SAFETY: C strings. The version selects the C library's own function, because functions of other interposers have no version.
        let of_libc =
            unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), FIRST_VERSION.as_ptr()) };
        // SAFETY: null, or the C library's function of this type.
        let of_libc = unsafe { std::mem::transmute::<*mut c_void, Option<Dlsym>>(of_libc) };
        // SAFETY: a valid handle and name. Called from here, it finds the first definition after this library.
        let next = of_libc.map(|dlsym| unsafe { dlsym(libc::RTLD_NEXT, c"dlsym".as_ptr()) });
        let next = next.filter(|next| !next.is_null());
        real = next.unwrap_or(find_nothing as *const () as *mut c_void);
        REAL_DLSYM.store(real, Ordering::Release);
    }
    // SAFETY: the C library's function of this type, or `find_nothing`.
    unsafe { std::mem::transmute::<*mut c_void, Dlsym>(real) }
}
