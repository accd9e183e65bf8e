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
    hasher.update(&id.to_le_bytes());
    hasher.update(cat.of(text));
    hasher.update(&[0]);
    hasher.update(name.of(text));
    Some(hasher.digest())
}

fn flow_id(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(unquoted(value)).ok()?;
    if value.starts_with(b"\"") {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        return u64::from_str_radix(digits, 16).ok();
    }
    let signed = text.parse::<i64>().map(i64::cast_unsigned);
    signed.or_else(|_| text.parse()).ok()
}

/// The value of a member that begins with its key, which holds no quote.
fn value_of(member: &[u8]) -> &[u8] {
    let colon = memchr::memchr(b':', member).map_or(member.len(), |at| at + 1);
    member[colon..].trim_ascii()
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
        let table: [(&[u8], Option<u64>); 9] = [
            (b"255", Some(255)),
            (b"\"0xff\"", Some(255)),
            (b"\"ff\"", Some(255)),
            (b"-1", Some(u64::MAX)),
            (b"1.5", None),
            (b"\"zz\"", None),
            (b"\"\"", None),
            (b"1180591620717411303424", None),
            (b"", None),
        ];
        for (text, id) in table {
            assert_eq!(flow_id(text), id, "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(value_of(b"\"id\" : 7 "), b"7");
    }
}
