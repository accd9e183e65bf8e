//! Names: the name and category of an event as text, and the maximum length of a name.

use crate::sys::memory::{count_out_of_memory, reserve};
use crate::text::encode::{string, string_bytes};
use crate::text::value::MAX_STRING_BYTES;
use sa_format::try_visible;

/// Length of `"name":` and `,"cat":` in bytes, with some reserve.
const NAME_KEYS_BYTES: usize = 16;
/// Maximum length of the name of a process or thread in bytes.
const MAX_NAME_BYTES: usize = 1024;

/// Appends the name and category of an event as `"name":"…","cat":"…"`. If there is not enough
/// memory, counts that and returns false.
pub(crate) fn write_name(text: &mut Vec<u8>, category: &str, name: &str) -> bool {
    let Some(name) = try_visible(name) else {
        count_out_of_memory();
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

/// Returns the name of a process or thread, shortened to the maximum length of 1,024 bytes.
pub(crate) fn cut_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME_BYTES)]
}
