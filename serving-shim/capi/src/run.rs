//! The id and the paths of the run, which are copied into the caller's memory.

use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use sa_recorder::Recorder;

use crate::call::guarded;

/// Returns the version of the library, in the form of `SA_PROFILE_VERSION`. The string is valid as long as the process lives.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns true if this is the main process of its run. Returns false if nothing is recorded.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_is_main() -> bool {
    guarded(false, || Recorder::get().is_main())
}

/// Copies the run's id into `buffer` like `snprintf`: writes at most `size` bytes including the NUL byte, and returns the full length. Returns 0 if nothing is
/// recorded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_run_id(buffer: *mut c_char, size: usize) -> usize {
    let id = guarded(None, || Recorder::get().run());
    // SAFETY: guaranteed by the caller.
    unsafe { copy(id.map(Into::into), buffer, size) }
}

/// Copies the absolute path of the run directory into `buffer`, like `sa_profile_run_id`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_directory(buffer: *mut c_char, size: usize) -> usize {
    let path = guarded(None, || Recorder::get().directory());
    // SAFETY: guaranteed by the caller.
    unsafe { copy(path, buffer, size) }
}

/// Copies the path for the merged trace into `buffer`, like `sa_profile_run_id`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_trace(buffer: *mut c_char, size: usize) -> usize {
    let path = guarded(None, || Recorder::get().trace());
    // SAFETY: guaranteed by the caller.
    unsafe { copy(path, buffer, size) }
}

/// Copies the path of this process's fragment into `buffer`, like `sa_profile_run_id`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_fragment(buffer: *mut c_char, size: usize) -> usize {
    let path = guarded(None, || Recorder::get().fragment());
    // SAFETY: guaranteed by the caller.
    unsafe { copy(path, buffer, size) }
}

/// Copies a text and a NUL byte to the caller's buffer, cut to `size` bytes in total. Returns the full length of the text in bytes.
///
/// # Safety
///
/// `buffer` is null, or `size` bytes are writable there.
unsafe fn copy(text: Option<PathBuf>, buffer: *mut c_char, size: usize) -> usize {
    let text = text.unwrap_or_default();
    let bytes = OsStr::as_bytes(text.as_os_str());
    if !buffer.is_null() && size > 0 {
        let copied = bytes.len().min(size - 1);
        // SAFETY: `copied` is less than `size`, and the caller's buffer does not overlap our own text.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), copied) };
        // SAFETY: as above.
        let end = unsafe { buffer.add(copied) };
        // SAFETY: as above.
        unsafe { end.write(0) };
    }
    bytes.len()
}
