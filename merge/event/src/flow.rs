//! Ids of flows and async events: converts the ids in lines to numbers that are unique in the whole trace.

use crate::event::Event;
use crate::json::{Fields, Span, last_member};
use crate::member::is_id;
use sa_format::Phase;
use serde::Deserialize;
use std::borrow::Cow;
use trace_base::number::unquoted;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const LOCAL_BITS: u32 = 40;
const ORDINAL_LIMIT: u64 = 1 << 20;
const HASHED: u64 = 1 << 63;
/// Seed for the hash of global ids. The seed for local ids is the ordinal of their process, which is always less.
const GLOBAL_SEED: u64 = u64::MAX;

#[derive(Deserialize)]
struct Id2<'a> {
    #[serde(borrow)]
    local: Option<Scoped<'a>>,
    #[serde(borrow)]
    global: Option<Scoped<'a>>,
}

/// An id in `id2`. Some programs write it as a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scoped<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Number(i64),
}

impl Scoped<'_> {
    fn key(&self) -> Result<u64, &[u8]> {
        match self {
            Scoped::Text(text) => key(text.as_bytes()),
            Scoped::Number(number) => Ok(number.cast_unsigned()),
        }
    }
}

/// Returns true if the end of a flow belongs to the next span of its thread, instead of the span around it.
#[inline]
pub fn binds_to_next(event: &Event<'_>) -> bool {
    if event.phase != Phase::FlowEnd {
        return false;
    }
    last_member(event.line, b"bp") != Some(br#""e""#)
}

/// Returns the id of an event in the trace and the span of the member with it, or `None` if the event has no valid id.
#[inline]
pub fn trace_id(event: &Event<'_>, ordinal: u64) -> Option<(u64, Span)> {
    let Fields { id, id2, .. } = event.fields;
    if id2.is_some()
        && let Some(scoped) = id2_trace_id(member_value(id2.slice(event.line)), ordinal)
    {
        return Some((scoped, id2));
    }
    let plain = || plain_trace_id(member_value(id.slice(event.line)), ordinal);
    id.is_some().then(|| (plain(), id))
}

/// Returns true if the event has a valid id.
pub(crate) fn has_id(text: &[u8], fields: &Fields) -> bool {
    let value = |span: Span| member_value(span.slice(text));
    fields.id.is_some() && is_id(value(fields.id))
        || fields.id2.is_some() && id2_trace_id(value(fields.id2), 0).is_some()
}

/// Returns the id in the trace for the `bind_id` of an event, which binds an event of any phase to a flow.
pub fn trace_bind_id(event: &Event<'_>, ordinal: u64) -> u64 {
    plain_trace_id(
        member_value(event.fields.bind_id.slice(event.line)),
        ordinal,
    )
}

/// Returns the id in the trace of the global flow with this number. A global flow is the same in every process.
pub fn id_from_global_number(number: u64) -> u64 {
    global(Ok(number))
}

/// Returns the id in the trace of an event of a global flow, or `None` if its flow is not global.
pub fn global_id(event: &Event<'_>) -> Option<u64> {
    let value = id2_value(event)?;
    memchr::memmem::find(value, br#""global""#)?;
    id2_trace_id(value, 0)
}

/// Returns the recorded number of a global flow, or `None` if the flow is not global.
pub fn global_number(event: &Event<'_>) -> Option<u64> {
    let value = id2_value(event)?;
    if let Some(text) = value.strip_prefix(br#"{"global":""#) {
        return hexadecimal(text.strip_suffix(b"\"}")?);
    }
    if value.starts_with(br#"{"local":""#) && !value.contains(&b',') {
        return None;
    }
    let id: Id2<'_> = serde_json::from_slice(value).ok()?;
    id.global?.key().ok()
}

fn id2_value<'a>(event: &Event<'a>) -> Option<&'a [u8]> {
    let id2 = event.fields.id2;
    id2.is_some().then(|| member_value(id2.slice(event.line)))
}

/// Returns the value of a member `"id": value`. The key must not contain a colon.
pub fn member_value(member: &[u8]) -> &[u8] {
    let colon = memchr::memchr(b':', member).map_or(member.len(), |at| at + 1);
    member[colon..].trim_ascii()
}

/// Returns the id in the trace for an `id2` with this value, or `None` if the value is invalid.
pub fn id2_trace_id(value: &[u8], ordinal: u64) -> Option<u64> {
    let canonical = |prefix: &[u8]| value.strip_prefix(prefix)?.strip_suffix(b"\"}");
    if let Some(text) = canonical(br#"{"local":""#).and_then(hexadecimal) {
        return Some(local(Ok(text), ordinal));
    }
    if let Some(text) = canonical(br#"{"global":""#).and_then(hexadecimal) {
        return Some(global(Ok(text)));
    }
    match serde_json::from_slice::<Id2<'_>>(value).ok()? {
        Id2 {
            global: Some(id), ..
        } => Some(global(id.key())),
        Id2 {
            local: Some(id), ..
        } => Some(local(id.key(), ordinal)),
        Id2 { .. } => None,
    }
}

fn plain_trace_id(value: &[u8], ordinal: u64) -> u64 {
    if value.starts_with(b"\"") {
        return local(key(unquoted(value)), ordinal);
    }
    let number = std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse::<u64>().ok());
    local(number.ok_or(value), ordinal)
}

/// Converts a text id as viewers do: hexadecimal digits with or without `0x` are a number, and any other text stays a text.
fn key(text: &[u8]) -> Result<u64, &[u8]> {
    hexadecimal(text).ok_or(text)
}

/// Parses a text of up to 16 hexadecimal digits, with or without `0x`.
#[inline]
pub(crate) fn hexadecimal(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let digit =
        |number: u64, byte: &u8| Some(number << 4 | u64::from(char::from(*byte).to_digit(16)?));
    digits.iter().try_fold(0, digit)
}

fn local(id: Result<u64, &[u8]>, ordinal: u64) -> u64 {
    match id {
        Ok(id) if id >> LOCAL_BITS == 0 && ordinal < ORDINAL_LIMIT => {
            (ordinal + 1) << LOCAL_BITS | id
        }
        other => hashed(other, ordinal),
    }
}

fn global(id: Result<u64, &[u8]>) -> u64 {
    hashed(id, GLOBAL_SEED)
}

fn hashed(id: Result<u64, &[u8]>, seed: u64) -> u64 {
    let hash = match id {
        Ok(number) => xxh3_64_with_seed(&number.to_le_bytes(), seed),
        // Hashing a text twice makes sure that it differs from a number.
        Err(text) => xxh3_64_with_seed(&xxh3_64(text).to_be_bytes(), !seed),
    };
    HASHED | hash >> 1
}

/// Appends `"<key>":"0x…"`.
pub fn write_id(key: &str, id: u64, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(br#"":"0x"#);
    let digits = 16 - (id.leading_zeros() / 4).min(15);
    let digit = |nth: u32| b"0123456789abcdef"[(id >> (4 * nth) & 15) as usize];
    out.extend((0..digits).rev().map(digit));
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_19_an_invalid_number_does_not_change_the_binding_of_an_end() {
        for (rest, binds) in [
            ("", true),
            (r#","bp":"e""#, false),
            (r#","bp":"x""#, true),
            (r#","bp":"e","args":{"a":NaN}"#, false),
            (r#","args":{"bp":"e"}"#, true),
        ] {
            let line = format!(r#"{{"ph":"f","pid":1,"tid":2,"ts":3,"id":4{rest}}}"#);
            let event = crate::line::parse(line.as_bytes()).unwrap();
            assert_eq!(binds_to_next(&event), binds, "{line}");
        }
    }
}
