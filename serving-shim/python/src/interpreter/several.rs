//! Several interpreters in one process: which of them this is, and whether there are others. From Python 3.12 on each may have a lock of its own.

use std::ffi::c_void;
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;

/// Gives the interpreter that was made last, as the public function of Python does, which is no part of the stable ABI.
type Head = unsafe extern "C" fn() -> *mut ffi::PyInterpreterState;

/// Whether the caller runs in the first interpreter of its process: what is here is for the whole process, and ends with that one.
#[pyfunction]
pub(crate) fn is_main_interpreter(py: Python<'_>) -> bool {
    // SAFETY: the interpreter of the calling thread lives.
    let id = unsafe { ffi::PyInterpreterState_GetID(current(py)) };
    id == 0
}

/// Whether the process has this interpreter alone. Only a thread that has its lock can make another one, which then is the last one made. So the answer holds as long as
/// the caller keeps the lock. Where it cannot be had the answer is no.
pub(crate) fn is_alone(py: Python<'_>) -> bool {
    // SAFETY: it takes nothing, and reads a pointer.
    head().is_some_and(|head| unsafe { head() } == current(py))
}

fn current(_py: Python<'_>) -> *mut ffi::PyInterpreterState {
    // SAFETY: the thread is attached, as `_py` shows.
    unsafe { ffi::PyInterpreterState_Get() }
}

fn head() -> Option<Head> {
    static FOUND: OnceLock<Option<Head>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: the name ends with a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"PyInterpreterState_Head".as_ptr()) };
        // SAFETY: a function of this type, as Python declares it since 3.0, or null, which is `None`.
        unsafe { std::mem::transmute::<*mut c_void, Option<Head>>(found) }
    })
}
