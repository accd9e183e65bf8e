//! The ids of processes, threads and arrows as viewers read them.

use crate::json::Span;
use crate::number::unquoted;
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

/// Whether a value may be the id of an async event.
pub(super) fn is_async_id(value: &[u8]) -> bool {
    value.starts_with(b"\"")
        || std::str::from_utf8(value).is_ok_and(|text| text.parse::<i64>().is_ok())
}

/// The value of a member that begins with its key, which holds no quote.
pub(super) fn value_of(member: &[u8]) -> &[u8] {
    let colon = memchr::memchr(b':', member).map_or(member.len(), |at| at + 1);
    member[colon..].trim_ascii()
}

/// A hash of a name or category; 0 if it has none, which is what viewers take an empty one for.
pub(super) fn word(value: &[u8]) -> u64 {
    let inner = unquoted(value);
    if inner.is_empty() || inner.len() == value.len() {
        return 0;
    }
    let escaped = memchr::memchr(b'\\', inner).and_then(|_| serde_json::from_slice(value).ok());
    match escaped {
        Some(text) => xxh3_64(String::as_bytes(&text)).max(1),
        None => xxh3_64(inner).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn takes_names_for_equal_that_are() {
        assert_eq!(word(br#""a/b""#), word(br#""a\/b""#));
        assert_ne!(word(b"\"a\""), word(b"\"b\""));
        for none in [&b""[..], b"\"\"", b"null", b"7"] {
            assert_eq!(word(none), 0);
        }
    }

    #[test]
    fn async_ids_are_texts_or_integers() {
        assert!(is_async_id(b"\"x\"") && is_async_id(b"-3"));
        assert!(!is_async_id(b"1.5") && !is_async_id(b"null") && !is_async_id(b""));
    }
}
