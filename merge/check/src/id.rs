//! The ids of processes, threads and arrows as viewers read them.

use super::loose::member;
use super::track::Key;
use trace_base::number::unquoted;
use trace_event::json::Span;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// A pid or tid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id {
    Absent,
    /// A number of 32 bits, or the hash of a text, which has more.
    Known(u64),
    /// Anything else becomes 0.
    OutOfRange,
}

impl Id {
    pub(super) fn of(text: &[u8]) -> Id {
        let Ok(inner) = std::str::from_utf8(unquoted(text)) else {
            return Id::OutOfRange;
        };
        if matches!(text, b"" | b"null") {
            return Id::Absent;
        }
        match inner.parse::<f64>() {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is within 32 bits, and viewers cut the decimals"
            )]
            Ok(number) if (0.0..=f64::from(u32::MAX)).contains(&number) => Id::Known(number as u64),
            Err(_) if text.starts_with(b"\"") => Id::Known(xxh3_64(text) | 1 << 63),
            _ => Id::OutOfRange,
        }
    }

    /// The number that viewers take.
    pub(super) fn shown(self) -> u64 {
        match self {
            Id::Known(id) => id,
            Id::Absent | Id::OutOfRange => 0,
        }
    }
}

/// What tells an arrow from others; `None` if viewers do not take its id. `id` begins with its key.
pub(super) fn flow_key(text: &[u8], id: Span, cat: Span, name: Span) -> Option<u64> {
    let id = flow_id(value_of(id.of(text)))?;
    let mut hasher = Xxh3::new();
    for part in [id, word(cat.of(text)), word(name.of(text))] {
        hasher.update(&part.to_le_bytes());
    }
    Some(hasher.digest())
}

/// The id of an arrow: an integer of 64 bits, or a text that is one in hexadecimal.
pub(super) fn flow_id(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(unquoted(value)).ok()?;
    if value.starts_with(b"\"") {
        return hexadecimal(text);
    }
    text.parse::<i64>().ok().map(i64::cast_unsigned)
}

/// Reads as C's `strtoull` does: space and a sign may come first, and a number that is too large becomes the largest.
fn hexadecimal(text: &str) -> Option<u64> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let is_negative = text.starts_with('-');
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = ["0x", "0X"].iter().find_map(|x| text.strip_prefix(x));
    let digits = match digits {
        Some("") => "0",
        Some(digits) => digits,
        None => text,
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let number = u64::from_str_radix(digits, 16).unwrap_or(u64::MAX);
    Some(if is_negative {
        number.wrapping_neg()
    } else {
        number
    })
}

/// What puts async events on one track; `None` if none of the ids is one. `id` and `id2` begin with their keys. An `id` counts before the
/// `global` one of `id2`, and that before the `local` one, which is the process's.
pub(super) fn async_key(text: &[u8], id: Span, id2: Span, cat: Span, pid: Id) -> Option<Key> {
    let id2 = value_of(id2.of(text));
    let ids = [
        value_of(id.of(text)),
        member(id2, b"global"),
        member(id2, b"local"),
    ];
    let ids = (0..).zip(ids.map(async_id));
    let (place, id) = ids.filter_map(|(place, id)| Some((place, id?))).next()?;
    let process = (place == 2).then(|| pid.shown());
    let of_id = match id {
        AsyncId::Number(number) => [0, number],
        // A text in `id` is not the same in `id2`.
        AsyncId::Text(hash) => [1 + place, hash],
    };
    let of_process = [u64::from(process.is_some()), process.unwrap_or(0)];
    let mut hasher = Xxh3::new();
    hasher.update(&word(cat.of(text)).to_le_bytes());
    for part in of_id.into_iter().chain(of_process) {
        hasher.update(&part.to_le_bytes());
    }
    let hash = hasher.digest();
    Some(Key { hash, process })
}

/// The id of an async event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AsyncId {
    Number(u64),
    /// The hash of a text.
    Text(u64),
}

fn async_id(value: &[u8]) -> Option<AsyncId> {
    if value.starts_with(b"\"") {
        return Some(AsyncId::Text(xxh3_64(value)));
    }
    let number = std::str::from_utf8(value).ok()?.parse::<i64>().ok()?;
    Some(AsyncId::Number(number.cast_unsigned()))
}

/// The value of a member that begins with its key, which holds no quote.
pub(super) fn value_of(member: &[u8]) -> &[u8] {
    let colon = memchr::memchr(b':', member).map_or(member.len(), |at| at + 1);
    member[colon..].trim_ascii()
}

/// A hash of a name or category as it is written, for viewers compare it so; 0 if it has none, which is what they take an empty one for.
pub(super) fn word(value: &[u8]) -> u64 {
    let inner = unquoted(value);
    if inner.is_empty() || inner.len() == value.len() {
        return 0;
    }
    xxh3_64(inner).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::loose::read;
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn reads_ids_as_viewers_do() {
        let table = [
            ("", Id::Absent),
            ("null", Id::Absent),
            ("7", Id::Known(7)),
            ("\"7\"", Id::Known(7)),
            ("4294967295", Id::Known(4_294_967_295)),
            ("4294967296", Id::OutOfRange),
            ("-1", Id::OutOfRange),
            ("true", Id::OutOfRange),
        ];
        for (text, id) in table {
            assert_eq!(Id::of(text.as_bytes()), id, "{text}");
        }
        assert!(Id::of(b"\"rank 0\"").shown() > u64::from(u32::MAX));
    }

    #[test]
    fn reads_flow_ids_as_viewers_do() {
        let table: [(&[u8], Option<u64>); 16] = [
            (b"255", Some(255)),
            (b"\"0xff\"", Some(255)),
            (b"\"ff\"", Some(255)),
            (b"-1", Some(u64::MAX)),
            (b"1.5", None),
            (b"\"zz\"", None),
            (b"\"\"", None),
            (b"1180591620717411303424", None),
            (b"18446744073709551615", None),
            (b"\"0X1F\"", Some(31)),
            (b"\" +5\"", Some(5)),
            (b"\"-5\"", Some(u64::MAX - 4)),
            (b"\"5 \"", None),
            (b"\"0x\"", Some(0)),
            (b"\"fffffffffffffffff\"", Some(u64::MAX)),
            (b"", None),
        ];
        for (text, id) in table {
            assert_eq!(flow_id(text), id, "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(value_of(b"\"id\" : 7 "), b"7");
    }

    #[test]
    fn takes_names_for_equal_that_are_written_alike() {
        assert_eq!(word(br#""a\/b""#), word(br#""a\/b""#));
        assert_ne!(word(br#""a/b""#), word(br#""a\/b""#));
        assert_ne!(word(b"\"a\""), word(b"\"b\""));
        for none in [&b""[..], b"\"\"", b"null", b"7"] {
            assert_eq!(word(none), 0);
        }
    }

    #[test]
    fn async_ids_are_texts_or_integers() {
        assert_eq!(async_id(b"-3"), Some(AsyncId::Number(3_u64.wrapping_neg())));
        assert!(matches!(async_id(b"\"x\""), Some(AsyncId::Text(_))));
        for none in ["1.5", "null", "", "9223372036854775808"] {
            assert_eq!(async_id(none.as_bytes()), None, "{none}");
        }
    }

    /// The hash of an event's key; the process is 1, or 2.
    fn key(event: &[u8], pid: u64) -> Option<u64> {
        let (fields, _) = read(event, 0).expect("an event");
        async_key(event, fields.id, fields.id2, fields.cat, Id::Known(pid)).map(|key| key.hash)
    }

    #[test]
    fn async_keys_are_those_of_perfetto() {
        let same = [
            (r#"{"cat":"c","id":7}"#, r#"{"cat":"c","id2":{"global":7}}"#),
            (r#"{"cat":"c","id":0}"#, r#"{"cat":"c","id":-0}"#),
            (r#"{"id":"x","id2":{"global":"y"}}"#, r#"{"id":"x"}"#),
            (
                r#"{"id2":{"local":"x","global":""}}"#,
                r#"{"id2":{"global":""}}"#,
            ),
            (
                r#"{"id":1.5,"id2":{"local":"x"}}"#,
                r#"{"id2":{"local":"x"}}"#,
            ),
        ];
        for (one, two) in same {
            let [one_key, two_key] = [one, two].map(|event| key(event.as_bytes(), 1));
            assert!(one_key.is_some() && one_key == two_key, "{one} {two}");
        }
        let keys = [
            r#"{"cat":"c","id":7}"#,
            r#"{"cat":"d","id":7}"#,
            r#"{"cat":"c","id":"7"}"#,
            r#"{"cat":"c","id":"x"}"#,
            r#"{"cat":"c","id2":{"global":"x"}}"#,
            r#"{"cat":"c","id2":{"local":"x"}}"#,
            r#"{"cat":"c","id2":{"local":7}}"#,
        ];
        let hashes: HashSet<_> = keys.iter().map(|event| key(event.as_bytes(), 1)).collect();
        assert_eq!((hashes.len(), hashes.contains(&None)), (keys.len(), false));
        let of_two = |event: &str| key(event.as_bytes(), 1) != key(event.as_bytes(), 2);
        assert!(of_two(keys[5]) && !of_two(keys[4]));
        assert_eq!(key(br#"{"id":1.5}"#, 1), None);
    }
}
