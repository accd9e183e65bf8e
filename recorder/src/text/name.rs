//! Names: name and category of an event as text, and how much of a longer name is kept.

use crate::sys::memory::{leave_out, reserve};
use crate::text::encode::{string, string_bytes};
use crate::text::value::MAX_STRING_BYTES;
use sa_format::try_visible;

/// `"name":` and `,"cat":`.
const NAME_KEYS_BYTES: usize = 16;
/// Longest name of a process or thread.
const MAX_NAME_BYTES: usize = 1024;

/// Appends `"name":"…","cat":"…"`; false, and counted, where there is no memory for it.
pub(crate) fn write_name(text: &mut Vec<u8>, category: &str, name: &str) -> bool {
    let Some(name) = try_visible(name) else {
        leave_out();
        return false;
    };
    let bytes = |text: &str| string_bytes(text, MAX_STRING_BYTES);
    if !reserve(text, NAME_KEYS_BYTES + bytes(&name) + bytes(category)) {
        return false;
    }
    text.extend_from_slice(b"\"name\":");
    string(text, &name, MAX_STRING_BYTES);
    text.extend_from_slice(b",\"cat\":");
    string(text, category, MAX_STRING_BYTES);
    true
}

/// The part of a process's or thread's name that is kept.
pub(crate) fn cut_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME_BYTES)]
}
