//! Ids of threads, arrows and async events, as viewers read them.
//!
//! In: values as JSON. Out: numbers that are equal if viewers consider the ids equal. Only this module knows which texts and numbers are equal to viewers. Texts
//! and combinations of values become hashes of 64 bits.

use trace_base::number::unquoted;
use trace_event::flow::member_value;
use trace_event::json::{Fields, last_member};
use xxhash_rust::xxh3::xxh3_64;

/// Kind of a track, so that tracks of different kinds have different keys.
#[derive(Clone, Copy)]
enum TrackKind {
    Thread,
    Async,
    Arrow,
}

/// Returns the id that viewers read from a pid or tid. It is 0 if the event does not have one, and `None` if the value is not a valid id.
pub(crate) fn thread_id(value: &[u8]) -> Option<u64> {
    if matches!(value, b"" | b"null") {
        return Some(0);
    }
    let text = std::str::from_utf8(unquoted(value)).ok()?;
    // A text such as `nan` or `inf` is not a number to viewers.
    let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    match text.parse::<f64>() {
        Ok(_) if is_number => text.parse::<u32>().ok().map(u64::from),
        _ if value.starts_with(b"\"") => Some(xxh3_64(value) | 1 << 63),
        _ => None,
    }
}

/// Returns the key of a thread's track. Thread 0 is on the track of the main thread.
pub(crate) fn thread_track(pid: u64, tid: u64) -> u64 {
    key(
        TrackKind::Thread,
        [pid, if tid == 0 { pid } else { tid }, 0],
    )
}

/// Returns the key of the arrow to which `s`, `t` or `f` belongs, or `None` without a valid id.
pub(crate) fn arrow(text: &[u8], fields: &Fields) -> Option<u64> {
    let id = flow_id(member_value(fields.id.slice(text)))?;
    let [category, name] = [fields.cat, fields.name].map(|field| text_hash(field.slice(text)));
    Some(key(TrackKind::Arrow, [id, category, name]))
}

/// Returns the id of an arrow: an integer of 64 bits, or a hexadecimal text.
fn flow_id(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(unquoted(value)).ok()?;
    if !value.starts_with(b"\"") {
        return text.parse::<i64>().ok().map(i64::cast_unsigned);
    }
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let digits = digits.unwrap_or(text);
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    // Viewers clamp a number that is too large.
    is_hex.then(|| u64::from_str_radix(digits, 16).unwrap_or(u64::MAX))
}

/// Returns the key of the track of an async event, or `None` without a valid id. An `id` has priority over the `global` one in `id2`. A `local` one is scoped to
/// its process.
pub(crate) fn async_track(text: &[u8], fields: &Fields, pid: u64) -> Option<u64> {
    let id2 = member_value(fields.id2.slice(text));
    let category = text_hash(fields.cat.slice(text));
    let unscoped = [
        async_id(member_value(fields.id.slice(text))),
        async_id(member(id2, b"global")),
    ];
    if let Some(id) = unscoped.into_iter().flatten().next() {
        return Some(key(TrackKind::Async, [id, category, 0]));
    }
    let local = async_id(member(id2, b"local"))?;
    Some(key(TrackKind::Async, [local, category, 1 + pid]))
}

/// Returns the id of an async event: an integer or a text.
fn async_id(value: &[u8]) -> Option<u64> {
    if value.starts_with(b"\"") {
        return Some(xxh3_64(value));
    }
    let number = std::str::from_utf8(value).ok()?.parse::<i64>().ok()?;
    Some(number.cast_unsigned())
}

/// Returns a hash of a name or category. It is 0 for an empty text and for a value that is not a text.
pub(crate) fn text_hash(value: &[u8]) -> u64 {
    match value {
        [b'"', first, ..] if *first != b'"' => xxh3_64(value).max(1),
        _ => 0,
    }
}

/// Returns the last value of `key` in an object, or an empty text.
pub(crate) fn member<'a>(object: &'a [u8], key: &[u8]) -> &'a [u8] {
    last_member(object, key).unwrap_or_default()
}

fn key(kind: TrackKind, [one, two, three]: [u64; 3]) -> u64 {
    let parts = [kind as u64, one, two, three].map(u64::to_le_bytes);
    xxh3_64(parts.as_flattened())
}
