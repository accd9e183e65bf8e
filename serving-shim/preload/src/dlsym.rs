//! `dlsym`, so that who asks a library of the vendor's for a function by its handle finds our wrapper of it, as who calls it by name does.
//!
//! torch_npu before 2.9.0.post6, MindSpore, and all that calls through Python's `ctypes` ask so. Everything else is none of our business, and goes to the
//! real `dlsym` by a jump: it looks at its return address, to know who asks (`RTLD_NEXT`, `RTLD_DEFAULT`). A call from here would be ours.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::hooks::hook_of;
use crate::real::is_ours;
use crate::thread::{is_outside, unnoticed};

/// The type of `dlsym`.
pub(crate) type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The version that `dlsym` has had since glibc was first on this architecture: with it the search never fails, so that nothing is allocated, which an
/// allocator may not be ready for that asks for its own functions.
const FIRST_VERSION: &CStr = if cfg!(target_arch = "aarch64") {
    c"GLIBC_2.17"
} else {
    c"GLIBC_2.2.5"
};

/// What the names of all wrapped functions begin with.
const PREFIXES: [&[u8]; 4] = [b"acl", b"rt", b"Hccl", b"mstx"];

/// The real one, once it was looked for.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The `dlsym` behind ours.
pub(crate) fn real_dlsym() -> Option<Dlsym> {
    let mut real = REAL.load(Ordering::Acquire);
    if real.is_null() {
        // SAFETY: C strings; the search begins behind this library.
        real = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), FIRST_VERSION.as_ptr()) };
        REAL.store(real, Ordering::Release);
    }
    // SAFETY: null, which is `None`, or the C library's function of this type.
    unsafe { std::mem::transmute::<*mut c_void, Option<Dlsym>>(real) }
}

/// Stands in the place of `dlsym`: asks [`answer`], and goes on to the real one if there is none.
///
/// # Safety
/// That of `dlsym`.
// SAFETY: the C library's name and type, on purpose. The stack is what it was, and the arguments are, where the real one is jumped to.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {answer}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jz 2f",
        "ret",
        "2:",
        "jmp qword ptr [rip + {real}]",
        answer = sym answer,
        real = sym REAL,
    )
}

/// The same on aarch64.
///
/// # Safety
/// That of `dlsym`.
// SAFETY: as above.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    naked_asm!(
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "bl {answer}",
        "mov x9, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "cbz x9, 2f",
        "mov x0, x9",
        "ret",
        "2:",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "br x16",
        answer = sym answer,
        real = sym REAL,
    )
}

/// Our wrapper, where a handle leads to the function that it calls; else null. It also sees to it that the real `dlsym` is known.
extern "C" fn answer(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    let (Some(real), false) = (real_dlsym(), name.is_null()) else {
        return ptr::null_mut();
    };
    let is_of_library = handle != libc::RTLD_DEFAULT && handle != libc::RTLD_NEXT;
    // What our own work asks for, to look at devices, is not the host's.
    if !is_of_library || !may_be_wrapped(name) || !is_outside() {
        return ptr::null_mut();
    }
    let wrapper = unnoticed(|| wrapper(real, handle, name)).flatten();
    wrapper.map_or(ptr::null_mut(), NonNull::as_ptr)
}

/// A quick look, for all the names that are none of ours.
fn may_be_wrapped(name: *const c_char) -> bool {
    // SAFETY: the caller's C string.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The wrapper of the function that a library has under a name. A function that another library has under that name is not the one that the wrapper calls:
/// who asked for it gets it.
fn wrapper(real: Dlsym, handle: *mut c_void, name: *const c_char) -> Option<NonNull<c_void>> {
    // SAFETY: the caller's C string.
    let hook = hook_of(unsafe { CStr::from_ptr(name) })?;
    // SAFETY: the caller's own arguments.
    let found = NonNull::new(unsafe { real(handle, name) })?;
    let is_behind = !is_ours(found) && hook.symbol.get() == Some(found);
    is_behind.then(|| NonNull::new((hook.wrapper)())).flatten()
}
