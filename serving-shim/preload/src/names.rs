//! What kernels are called: learnt where a program asks for a kernel by its name or registers one, else asked of the runtime once for each handle.

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

/// Longest name that is asked for.
const ROOM_BYTES: usize = 4096;

static HANDLES: Table = Table::new();
static STUBS: Table = Table::new();
/// Binaries whose kernels have one name.
static BINARIES: Table = Table::new();

/// What a launch is called.
#[derive(Debug)]
pub(crate) enum Name<'a> {
    /// A kernel that is known.
    Kernel(&'static KernelName),
    /// A kernel that was just asked for.
    Asked(KernelName),
    /// What the host calls it.
    Text(&'a CStr),
    /// Nobody said.
    Unknown,
}

/// The name of a kernel by its handle.
pub(crate) fn of_handle(func: aclrtFuncHandle) -> Name<'static> {
    match HANDLES.get(func.addr()) {
        Some(Entry::Named(name)) => Name::Kernel(name),
        Some(Entry::Nameless) => Name::Unknown,
        None if func.is_null() || HANDLES.refuses(func.addr()) => Name::Unknown,
        None => ask(func),
    }
}

/// The same for a handle of the rt level, which need not be one that ACL can name: what was learnt of it alone counts.
pub(crate) fn of_rt_handle(func: *mut c_void) -> Name<'static> {
    of(HANDLES.get(func.addr()))
}

/// The name of the kernels of a binary by its handle.
pub(crate) fn of_binary(handle: *mut c_void) -> Name<'static> {
    of(BINARIES.get(handle.addr()))
}

/// The name of a kernel by the address of its stub.
pub(crate) fn of_stub(stub: *const c_void) -> Name<'static> {
    of(STUBS.get(stub.addr()))
}

fn of(entry: Option<Entry>) -> Name<'static> {
    match entry {
        Some(Entry::Named(name)) => Name::Kernel(name),
        _ => Name::Unknown,
    }
}

/// The name that the host gives with the call, if it is one.
pub(crate) fn of_text<'a>(text: *const c_char) -> Name<'a> {
    if text.is_null() {
        return Name::Unknown;
    }
    // SAFETY: the host hands the text to the real function as a C string; it outlives the call.
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

/// The name in the record of a launch on the AI CPU: the operator's, else the kernel's.
pub(crate) fn of_aicpu<'a>(names: *const c_void) -> Name<'a> {
    // SAFETY: the host hands the record to the real function, which reads it.
    let Some(names) = (unsafe { names.cast::<AicpuNames>().as_ref() }) else {
        return Name::Unknown;
    };
    match of_text(names.op) {
        Name::Text(op) => Name::Text(op),
        _ => of_text(names.kernel),
    }
}

/// Learns what the kernel is called whose handle was written to `func`.
pub(crate) fn learn_handle(func: *const aclrtFuncHandle, name: *const c_char) {
    if let (Some(func), Name::Text(name)) = (handle_at(func), of_text(name))
        && observe::is_configured()
    {
        HANDLES.set(func.addr(), name);
    }
}

/// Forgets what the kernel was called whose handle was written to `func`: the runtime may have used it for another one before.
pub(crate) fn forget_handle(func: *const aclrtFuncHandle) {
    if let Some(func) = handle_at(func) {
        HANDLES.forget(func.addr());
    }
}

/// Learns what the kernels of a binary are called whose handle was written to `handle`. Another binary may have had it before.
pub(crate) fn learn_binary(binary: *const rtDevBinary_t, handle: *const *mut c_void) {
    let Some(handle) = handle_at(handle).filter(|_| observe::is_configured()) else {
        return;
    };
    // SAFETY: the host has just handed the binary to the real function, which has read it.
    let name = unsafe { binary::name_of(binary) };
    let name = name.filter(|name| name.len() < ROOM_BYTES);
    match name.and_then(|name| CString::new(name).ok()) {
        Some(name) => BINARIES.set(handle.addr(), &name),
        None => BINARIES.forget(handle.addr()),
    }
}

/// Learns what the kernel of a stub is called.
pub(crate) fn learn_stub(stub: *const c_void, name: *const c_char) {
    if let Name::Text(name) = of_text(name)
        && observe::is_configured()
    {
        STUBS.set(stub.addr(), name);
    }
}

/// The handle that a successful call wrote.
pub(crate) fn written(place: *const *mut c_void, result: aclError) -> *mut c_void {
    let handle = if result == 0 { handle_at(place) } else { None };
    handle.unwrap_or(std::ptr::null_mut())
}

fn handle_at(place: *const *mut c_void) -> Option<*mut c_void> {
    // SAFETY: the real function has just succeeded in writing there.
    unsafe { place.as_ref() }.copied()
}

/// Asks the runtime, and remembers the answer; one that says that the handle is invalid is not believed for ever, since such a launch is tried again.
fn ask(func: aclrtFuncHandle) -> Name<'static> {
    static REAL: Symbol = Symbol::new("aclrtGetFunctionName\0", &ACL);
    let Some(real) = REAL.get() else {
        return Name::Unknown; // older than CANN 8.5; a later library may have it
    };
    // SAFETY: the symbol has the vendor's type.
    let real = unsafe { std::mem::transmute::<NonNull<c_void>, aclrtGetFunctionName>(real) };
    let mut text = [MaybeUninit::<u8>::zeroed(); ROOM_BYTES];
    let room = u32::try_from(ROOM_BYTES - 1).unwrap_or(0);
    // SAFETY: a handle that the host is about to launch, and room for `room` bytes with one more that stays zero.
    let result = observe::own_call(|| unsafe { real(func, room, text.as_mut_ptr().cast()) });
    if result == ascend_sys::codes::ACL_ERROR_RT_INVALID_HANDLE {
        return Name::Unknown;
    }
    // SAFETY: zeroed, and its last byte still is.
    let name = unsafe { CStr::from_ptr(text.as_ptr().cast()) };
    if result != 0 || name.is_empty() {
        HANDLES.set_nameless(func.addr());
        return Name::Unknown;
    }
    HANDLES.set(func.addr(), name);
    // Not what the table has now: it may have had no room for it.
    Name::Asked(KernelName::new(name.to_string_lossy().into_owned()))
}
