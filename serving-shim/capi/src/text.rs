//! Converts C strings to text, including null pointers and invalid UTF-8.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};

/// Replacement for a null name.
const NULL: &str = "(null)";

/// Returns the text of the C string at `string`. Invalid UTF-8 is replaced with U+FFFD.
///
/// # Safety
///
/// `string` is null, or readable up to its NUL byte for `'a`.
#[inline]
pub(crate) unsafe fn name<'a>(string: *const c_char) -> Cow<'a, str> {
    // SAFETY: guaranteed by the caller.
    unsafe { optional(string) }.unwrap_or(Cow::Borrowed(NULL))
}

/// Returns the text of the C string at `string`, or `None` for a null pointer.
///
/// # Safety
///
/// The same as for [`name`].
#[inline]
pub(crate) unsafe fn optional<'a>(string: *const c_char) -> Option<Cow<'a, str>> {
    if string.is_null() {
        return None;
    }
    // SAFETY: not null; the caller guarantees the rest.
    Some(lossy(unsafe { CStr::from_ptr(string) }.to_bytes()))
}

/// Returns the text of the `len` bytes at `bytes`, which need no NUL byte, or `None` for a null pointer.
///
/// # Safety
///
/// `bytes` is null, or `len` bytes are readable there for `'a`.
#[inline]
pub(crate) unsafe fn counted<'a>(bytes: *const c_char, len: usize) -> Option<Cow<'a, str>> {
    // SAFETY: guaranteed by the caller.
    unsafe { array(bytes.cast::<u8>(), len) }.map(lossy)
}

/// Returns the `len` elements at `first` as a slice, or `None` for a null or misaligned pointer or an impossible length.
///
/// # Safety
///
/// `first` is null, or `len` elements are readable there for `'a`.
#[inline]
pub(crate) unsafe fn array<'a, T>(first: *const T, len: usize) -> Option<&'a [T]> {
    let bytes = len.checked_mul(size_of::<T>())?;
    if !first.is_aligned() || first.is_null() || isize::try_from(bytes).is_err() {
        return None;
    }
    // SAFETY: not null, aligned and of a possible size; the caller guarantees the rest.
    Some(unsafe { std::slice::from_raw_parts(first, len) })
}

#[inline]
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    if bytes.is_ascii() {
        // SAFETY: ASCII is UTF-8. Checking for ASCII is faster than checking for UTF-8.
        return Cow::Borrowed(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}
