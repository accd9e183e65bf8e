//! `dlsym`, so that callers who look a vendor function up by a library's handle get our wrapper, like callers who use its name.
//!
//! torch_npu before 2.9.0.post6, MindSpore, and everything that uses Python's `ctypes` look functions up by handle. All other queries go to the real
//! `dlsym` by a jump, not a call: it uses its return address to identify the caller (`RTLD_NEXT`, `RTLD_DEFAULT`), which a call would make this library.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{self, NonNull};

use crate::hooks::hook_of;
use crate::real::{Dlsym, REAL_DLSYM, is_global, is_ours, real_dlsym};
use crate::thread::{is_outside, unnoticed};
use crate::visibility::own_dlsym_called;

/// Prefixes of the names of all wrapped functions.
const PREFIXES: [&[u8]; 4] = [b"acl", b"rt", b"Hccl", b"mstx"];

/// Replaces `dlsym`: returns the function from `answer`, or jumps to the real one if there is no answer.
///
/// # Safety
/// The requirements of `dlsym`.
// SAFETY: the name and type are deliberately those of the C library. Stack and arguments are restored before the jump to the real function.
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
        real = sym REAL_DLSYM,
    )
}

/// Replaces `dlsym` on aarch64, as described above.
///
/// # Safety
/// The requirements of `dlsym`.
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
        real = sym REAL_DLSYM,
    )
}

/// Our answer to a query. The calling conventions return it in two registers.
#[repr(C)]
struct Answer {
    /// 1 if `function` is the answer, 0 if the real `dlsym` must answer.
    is_ours: usize,
    function: *mut c_void,
}

/// Answers a call of `dlsym` for the host. Returns our wrapper if the handle leads to the function that the wrapper calls, or null if the real `dlsym` would
/// find a wrapper without a real function. Otherwise the real `dlsym` must answer. Also makes sure that `REAL_DLSYM` is set, because the caller jumps there.
extern "C" fn answer(handle: *mut c_void, name: *const c_char) -> Answer {
    let real = real_dlsym();
    let function = if name.is_null() || handle == libc::RTLD_NEXT || !may_be_wrapped(name) {
        None
    } else if is_outside() {
        unnoticed(|| find_wrapper(real, handle, name)).flatten()
    } else {
        // Our own work queries functions for itself, not for the host.
        own_dlsym_called();
        None
    };
    Answer {
        is_ours: usize::from(function.is_some()),
        function: function.unwrap_or(ptr::null_mut()),
    }
}

/// Returns false, quickly, for a function's name that is certainly not wrapped, because it does not begin like a vendor function's.
fn may_be_wrapped(name: *const c_char) -> bool {
    // SAFETY: the caller's C string.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the wrapper of the function that a library defines under this name. If another library defines the name, the wrapper does not call that function,
/// so the caller must get the function itself, and the result is `None`.
fn find_wrapper(real: Dlsym, handle: *mut c_void, name: *const c_char) -> Option<*mut c_void> {
    // SAFETY: the caller's C string.
    let hook = hook_of(unsafe { CStr::from_ptr(name) })?;
    // SAFETY: the caller's own arguments. With RTLD_DEFAULT only the global scope is searched, not that of a caller that was loaded locally, because the call comes from here.
    let found = NonNull::new(unsafe { real(handle, name) })?;
    if !is_ours(found) {
        return hook.symbol.calls(found).then(hook.wrapper);
    }
    // Programs query a name to find out whether this CANN has a function.
    let is_missing = is_global(handle) && hook.symbol.is_nowhere();
    is_missing.then(|| {
        // SAFETY: as above. No later library has the function, so this leaves the message of a failed search.
        unsafe { real(libc::RTLD_NEXT, name) };
        ptr::null_mut()
    })
}
