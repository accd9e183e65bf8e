//! `dlsym`, so that who asks a library of the vendor's for a function by its handle finds our wrapper of it, as who calls it by name does.
//!
//! torch_npu before 2.9.0.post6, MindSpore, and all that calls through Python's `ctypes` ask so. Everything else is none of our business, and goes to the
//! real `dlsym` by a jump: it looks at its return address, to know who asks (`RTLD_NEXT`, `RTLD_DEFAULT`). A call from here would be ours.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{self, NonNull};

use crate::hooks::hook_of;
use crate::reach::passed_on;
use crate::real::{BEHIND, Dlsym, is_ours, real_dlsym};
use crate::thread::{is_outside, unnoticed};

/// What the names of all wrapped functions begin with.
const PREFIXES: [&[u8]; 4] = [b"acl", b"rt", b"Hccl", b"mstx"];

/// Stands in the place of `dlsym`: asks `answer`, and goes on to the real one if there is none.
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
        real = sym BEHIND,
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
        real = sym BEHIND,
    )
}

/// Our wrapper, where a handle leads to the function that it calls; else null. It also sees to it that the real `dlsym` is known.
extern "C" fn answer(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    let real = real_dlsym();
    if name.is_null() || handle == libc::RTLD_NEXT || !may_be_wrapped(name) {
        return ptr::null_mut();
    }
    // What our own work asks for, to look at devices, is not the host's.
    if !is_outside() {
        passed_on();
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
    // In the global scope the linker finds an exported wrapper first. What only the caller's own scope has, as below a library that was loaded locally, is not found from here: its calls go past us.
    if handle == libc::RTLD_DEFAULT && hook.is_exported {
        return None;
    }
    // SAFETY: the caller's own arguments.
    let found = NonNull::new(unsafe { real(handle, name) })?;
    let is_behind = !is_ours(found) && hook.symbol.is_behind(found);
    is_behind.then(|| NonNull::new((hook.wrapper)())).flatten()
}
