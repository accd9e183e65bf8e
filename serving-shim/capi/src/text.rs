//! C strings → text: null pointers and bytes that are no UTF-8 have a meaning too.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};

/// What a null name reads as.
const NULL: &str = "(null)";

/// The text at `string`, which ends with a NUL byte. What is no UTF-8 in it is replaced by U+FFFD.
///
/// # Safety
///
/// `string` is null, or readable up to its NUL byte for `'a`.
#[inline]
pub(crate) unsafe fn name<'a>(string: *const c_char) -> Cow<'a, str> {
    // SAFETY: the caller's.
    unsafe { optional(string) }.unwrap_or(Cow::Borrowed(NULL))
}

/// The text at `string`; `None` for a null pointer.
///
/// # Safety
///
/// As [`name`].
#[inline]
pub(crate) unsafe fn optional<'a>(string: *const c_char) -> Option<Cow<'a, str>> {
    if string.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller's for the rest.
    Some(lossy(unsafe { CStr::from_ptr(string) }.to_bytes()))
}

/// The text of `len` bytes at `bytes`; `None` for a null pointer.
///
/// # Safety
///
/// `bytes` is null, or `len` bytes are readable there for `'a`.
#[inline]
pub(crate) unsafe fn counted<'a>(bytes: *const c_char, len: usize) -> Option<Cow<'a, str>> {
    // SAFETY: the caller's.
    unsafe { array(bytes.cast::<u8>(), len) }.map(lossy)
}

/// The `len` elements at `first`; `None` for a null pointer or a length that no memory has.
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
    // SAFETY: not null, aligned, of a possible size, and the caller's for the rest.
    Some(unsafe { std::slice::from_raw_parts(first, len) })
}

#[inline]
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    if bytes.is_ascii() {
        // SAFETY: ASCII is UTF-8; that a name is ASCII is seen sooner than that it is UTF-8.
        return Cow::Borrowed(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}
