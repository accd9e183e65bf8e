//! `dlsym`, so that who asks a library of the vendor's for a function by its handle finds our wrapper of it, as who calls it by name does.
//!
//! torch_npu before 2.9.0.post6, MindSpore, and all that calls through Python's `ctypes` ask so. Everything else is none of our business, and goes to the
//! real `dlsym` by a jump: it looks at its return address, to know who asks (`RTLD_NEXT`, `RTLD_DEFAULT`). A call from here would be ours.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{self, NonNull};

use crate::hooks::hook_of;
use crate::reach::passed_on;
use crate::real::{BEHIND, Dlsym, is_global, is_ours, real_dlsym};
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
        "mov rax, rdx",
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
        "mov x10, x1",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "cbz x9, 2f",
        "mov x0, x10",
        "ret",
        "2:",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "br x16",
        answer = sym answer,
        real = sym BEHIND,
    )
}

/// What the caller gets: the calling conventions return it in two registers.
#[repr(C)]
struct Answer {
    /// Else the real `dlsym` answers.
    is_ours: usize,
    function: *mut c_void,
}

/// Our wrapper, where a handle leads to the function that it calls; null, where the real `dlsym` would find a wrapper with nothing behind it. It also sees to it that the real `dlsym` is known.
extern "C" fn answer(handle: *mut c_void, name: *const c_char) -> Answer {
    let real = real_dlsym();
    let function = if name.is_null() || handle == libc::RTLD_NEXT || !may_be_wrapped(name) {
        None
    } else if is_outside() {
        unnoticed(|| function(real, handle, name)).flatten()
    } else {
        // What our own work asks for, to look at devices, is not the host's.
        passed_on();
        None
    };
    Answer {
        is_ours: usize::from(function.is_some()),
        function: function.unwrap_or(ptr::null_mut()),
    }
}

/// A quick look, for all the names that are none of ours.
fn may_be_wrapped(name: *const c_char) -> bool {
    // SAFETY: the caller's C string.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The wrapper of the function that a library has under a name. A function that another library has under that name is not the one that the wrapper calls:
/// who asked for it gets it.
fn function(real: Dlsym, handle: *mut c_void, name: *const c_char) -> Option<*mut c_void> {
    // SAFETY: the caller's C string.
    let hook = hook_of(unsafe { CStr::from_ptr(name) })?;
    // SAFETY: the caller's own arguments. Where these are RTLD_DEFAULT, only the global scope is searched, since the call comes from here, and not the scope of a caller that was loaded locally.
    let found = NonNull::new(unsafe { real(handle, name) })?;
    if !is_ours(found) {
        return hook.symbol.is_behind(found).then(hook.wrapper);
    }
    // Programs ask whether this CANN has a function.
    let is_missing = is_global(handle) && hook.symbol.is_nowhere();
    is_missing.then(|| {
        // SAFETY: as above. Behind this library there is none: this leaves the message of a search that failed.
        unsafe { real(libc::RTLD_NEXT, name) };
        ptr::null_mut()
    })
}
