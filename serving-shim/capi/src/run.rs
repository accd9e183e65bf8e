//! The run: its id and its paths, copied into the caller's memory.

use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use sa_recorder::Recorder;

use crate::call::guarded;

/// The library's version, as in `SA_PROFILE_VERSION`; lives as long as the process.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Whether this is the main process of its run. False if nothing is recorded.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_is_main() -> bool {
    guarded(false, || Recorder::get().is_main())
}

/// Copies the run's id into `buffer`, as `snprintf` does: at most `size` bytes with the NUL byte, and returns the length of the whole. 0 if nothing is
/// recorded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_run_id(buffer: *mut c_char, size: usize) -> usize {
    let id = guarded(None, || Recorder::get().run());
    // SAFETY: the caller's.
    unsafe { copy(id.map(Into::into), buffer, size) }
}

/// Copies the run directory's absolute path into `buffer`, as `sa_profile_run_id` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_directory(buffer: *mut c_char, size: usize) -> usize {
    let path = guarded(None, || Recorder::get().directory());
    // SAFETY: the caller's.
    unsafe { copy(path, buffer, size) }
}

/// Copies the path where the merged trace belongs into `buffer`, as `sa_profile_run_id` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_trace(buffer: *mut c_char, size: usize) -> usize {
    let path = guarded(None, || Recorder::get().trace());
    // SAFETY: the caller's.
    unsafe { copy(path, buffer, size) }
}

/// Copies the path of this process's fragment into `buffer`, as `sa_profile_run_id` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_fragment(buffer: *mut c_char, size: usize) -> usize {
    let path = guarded(None, || Recorder::get().fragment());
    // SAFETY: the caller's.
    unsafe { copy(path, buffer, size) }
}

/// Copies a text and a NUL byte, cut to `size` bytes in all; returns the length of the text.
///
/// # Safety
///
/// `buffer` is null, or `size` bytes may be written there.
unsafe fn copy(text: Option<PathBuf>, buffer: *mut c_char, size: usize) -> usize {
    let text = text.unwrap_or_default();
    let bytes = OsStr::as_bytes(text.as_os_str());
    if !buffer.is_null() && size > 0 {
        let kept = bytes.len().min(size - 1);
        // SAFETY: `kept` is less than `size`, and no buffer of the caller's overlaps with our own text.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), kept) };
        // SAFETY: as above.
        let end = unsafe { buffer.add(kept) };
        // SAFETY: as above.
        unsafe { end.write(0) };
    }
    bytes.len()
}
