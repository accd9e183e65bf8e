//! Kernel names. They are learned when a program looks a kernel up by its name or registers one. Otherwise the runtime is asked once for each handle.

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use ascend_sys::acl::kernel::aclrtGetFunctionName;
use ascend_sys::types::{aclError, aclrtFuncHandle, rtDevBinary_t};

use crate::kernel_name::KernelName;
use crate::observe;
use crate::real::{ACL, Symbol};
use table::{Entry, Table};

mod binary;
mod table;

/// Size of the buffer for a name, with its NUL.
const NAME_BYTES: usize = 4096;

static HANDLES: Table = Table::new();
static STUBS: Table = Table::new();
/// Binaries whose kernels all have the same name.
static BINARIES: Table = Table::new();

/// The name of a launch.
#[derive(Debug)]
pub(crate) enum Name<'a> {
    /// Known name of a kernel.
    Kernel(&'static KernelName),
    /// Name of a kernel that the runtime has just returned.
    Asked(KernelName),
    /// Text that the host passed with the call.
    Text(&'a CStr),
    /// No known name.
    Unknown,
}

/// Returns the name of the kernel that has this handle in ACL. Asks the runtime if the name is not known yet.
pub(crate) fn by_handle(func: aclrtFuncHandle) -> Name<'static> {
    match HANDLES.get(func.addr()) {
        Some(Entry::Named(name)) => Name::Kernel(name),
        Some(Entry::Nameless) => Name::Unknown,
        None if func.is_null() || HANDLES.refuses(func.addr()) => Name::Unknown,
        None => ask_runtime(func),
    }
}

/// Returns the name of the kernel that has this handle at the rt level, the vendor's interface below ACL. ACL may not know such a handle, so only learned
/// names count.
pub(crate) fn by_rt_handle(func: *mut c_void) -> Name<'static> {
    from_entry(HANDLES.get(func.addr()))
}

/// Returns the common name of the kernels in the registered binary with this handle, if it was learned.
pub(crate) fn by_binary(handle: *mut c_void) -> Name<'static> {
    from_entry(BINARIES.get(handle.addr()))
}

/// Returns the name of the kernel that was registered with this stub (an address in the program), if it was learned.
pub(crate) fn by_stub(stub: *const c_void) -> Name<'static> {
    from_entry(STUBS.get(stub.addr()))
}

fn from_entry(entry: Option<Entry>) -> Name<'static> {
    match entry {
        Some(Entry::Named(name)) => Name::Kernel(name),
        _ => Name::Unknown,
    }
}

/// Returns the name that the host passes with a call as a C string, or `Unknown` if it is null or empty.
pub(crate) fn from_text<'a>(text: *const c_char) -> Name<'a> {
    if text.is_null() {
        return Name::Unknown;
    }
    // SAFETY: the host passes the text to the real function as a C string; it outlives the call.
    let text = unsafe { CStr::from_ptr(text) };
    match text.is_empty() {
        true => Name::Unknown,
        false => Name::Text(text),
    }
}

/// The names that come with a launch on the AI CPU.
#[repr(C)]
struct AicpuNames {
    so: *const c_char,
    kernel: *const c_char,
    op: *const c_char,
}

/// Returns the name in the host's description of a launch on the AI CPU: the operator's, or the kernel's if the operator has none.
pub(crate) fn from_aicpu<'a>(names: *const c_void) -> Name<'a> {
    // SAFETY: the host passes the record to the real function, which reads it.
    let Some(names) = (unsafe { names.cast::<AicpuNames>().as_ref() }) else {
        return Name::Unknown;
    };
    match from_text(names.op) {
        Name::Text(op) => Name::Text(op),
        _ => from_text(names.kernel),
    }
}

/// Stores the name of a kernel, after the runtime has written the kernel's handle to `func`.
pub(crate) fn learn_handle(func: *const aclrtFuncHandle, name: *const c_char) {
    if let (Some(func), Name::Text(name)) = (handle_at(func), from_text(name))
        && observe::is_configured()
    {
        HANDLES.set(func.addr(), name);
    }
}

/// Forgets the name of the kernel whose handle the runtime has written to `func`, because the same handle may have belonged to another kernel before.
pub(crate) fn forget_handle(func: *const aclrtFuncHandle) {
    if let Some(func) = handle_at(func) {
        HANDLES.forget(func.addr());
    }
}

/// Stores the common name of the kernels in a binary, after the runtime has written the binary's handle to `handle`. Another binary may have had this handle
/// before.
pub(crate) fn learn_binary(binary: *const rtDevBinary_t, handle: *const *mut c_void) {
    let Some(handle) = handle_at(handle).filter(|_| observe::is_configured()) else {
        return;
    };
    // SAFETY: the host has just passed the binary to the real function, which has read it.
    let name = unsafe { binary::kernel_name(binary) }
        .filter(|name| name.len() < NAME_BYTES)
        .and_then(|name| CString::new(name).ok());
    match name {
        Some(name) => BINARIES.set(handle.addr(), &name),
        None => BINARIES.forget(handle.addr()),
    }
}

/// Stores the name of the kernel that is registered with this stub (an address in the program).
pub(crate) fn learn_stub(stub: *const c_void, name: *const c_char) {
    if let Name::Text(name) = from_text(name)
        && observe::is_configured()
    {
        STUBS.set(stub.addr(), name);
    }
}

/// Returns the handle that a call of the runtime wrote to `output`, or null if the call failed.
pub(crate) fn written_handle(output: *const *mut c_void, result: aclError) -> *mut c_void {
    let handle = if result == 0 { handle_at(output) } else { None };
    handle.unwrap_or(std::ptr::null_mut())
}

fn handle_at(output: *const *mut c_void) -> Option<*mut c_void> {
    // SAFETY: the real function has just written there.
    unsafe { output.as_ref() }.copied()
}

/// Asks the runtime for the name of a kernel, by its handle, and stores the answer. "Invalid handle" is not stored, because callers repeat such a launch.
fn ask_runtime(func: aclrtFuncHandle) -> Name<'static> {
    static REAL: Symbol = Symbol::new("aclrtGetFunctionName\0", &ACL);
    let Some(real) = REAL.get() else {
        return Name::Unknown; // CANN before 8.5; a library that is loaded later may have the function
    };
    // SAFETY: the symbol has the vendor's type.
    let real = unsafe { std::mem::transmute::<NonNull<c_void>, aclrtGetFunctionName>(real) };
    let mut text = [MaybeUninit::<u8>::zeroed(); NAME_BYTES];
    let capacity = u32::try_from(NAME_BYTES - 1).unwrap_or(0);
    // SAFETY: a handle that the host is about to launch, and a buffer for `capacity` bytes and one more, which stays zero.
    let result = observe::own_call(|| unsafe { real(func, capacity, text.as_mut_ptr().cast()) });
    if result == ascend_sys::codes::ACL_ERROR_RT_INVALID_HANDLE {
        return Name::Unknown;
    }
    // SAFETY: the buffer was zeroed, and its last byte was not written.
    let name = unsafe { CStr::from_ptr(text.as_ptr().cast()) };
    if result != 0 || name.is_empty() {
        HANDLES.set_nameless(func.addr());
        return Name::Unknown;
    }
    HANDLES.set(func.addr(), name);
    // Not read from the table, which may have had no room for it.
    Name::Asked(KernelName::new(name.to_string_lossy().into_owned()))
}
