//! Processes with several interpreters: which one this is, and whether it is the only one. From Python 3.12 on, each may have its own GIL.

use std::ffi::c_void;
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;

/// Type of `PyInterpreterState_Head`, which returns the most recently created interpreter. It is public but not part of the stable ABI.
type Head = unsafe extern "C" fn() -> *mut ffi::PyInterpreterState;

/// Returns true if the caller runs in the first interpreter of its process. The sampling hooks cover the whole process, and end with that interpreter.
#[pyfunction]
pub(crate) fn is_main_interpreter(py: Python<'_>) -> bool {
    // SAFETY: the interpreter of the calling thread is alive.
    let id = unsafe { ffi::PyInterpreterState_GetID(current(py)) };
    id == 0
}

/// Returns true if this is the process's only interpreter. Only a thread that holds its GIL could create another one, which would then be the most recent. So the answer stays valid as
/// long as the caller holds the GIL. Returns false if the function for this is not available.
pub(crate) fn is_only_interpreter(py: Python<'_>) -> bool {
    // SAFETY: the function takes no arguments and reads a pointer.
    head_function().is_some_and(|head_function| unsafe { head_function() } == current(py))
}

fn current(_py: Python<'_>) -> *mut ffi::PyInterpreterState {
    // SAFETY: the thread is attached, as `_py` shows.
    unsafe { ffi::PyInterpreterState_Get() }
}

fn head_function() -> Option<Head> {
    static FOUND: OnceLock<Option<Head>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: the name ends with a NUL byte.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"PyInterpreterState_Head".as_ptr()) };
        // SAFETY: a function of this type, which Python has declared since 3.0, or null, which is `None`.
        unsafe { std::mem::transmute::<*mut c_void, Option<Head>>(found) }
    })
}
