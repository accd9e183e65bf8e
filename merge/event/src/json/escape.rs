//! Escapes that JSON allows and Perfetto does not read.
//!
//! JSON writes a character beyond U+FFFF as two escapes of its halves (`\ud83e`), and so does Python. Perfetto takes them for letters, and refuses a text
//! that has an escaped quote, too. It also takes the quote behind an escaped backslash for one of the text, which then never ends.

use memchr::memchr;
use std::char::{REPLACEMENT_CHARACTER, decode_utf16};

/// What is read of half a character: backslash, `u`, four digits.
const ESCAPE_BYTES: usize = 6;
/// A backslash that is read wherever it stands.
const BACKSLASH: &[u8] = b"\\u005c";

/// Whether the digits behind `\u` are those of half a character.
#[inline]
pub(super) fn is_half(digits: &[u8]) -> bool {
    matches!(
        digits,
        [b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F', ..]
    )
}

/// Whether a text has both an escaped quote and half a character in one of its strings, or has them as one. Viewers do not read it.
pub(crate) fn is_unreadable(text: &[u8]) -> bool {
    let (mut has_half, mut has_quote, mut at) = (false, false, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => (has_half, has_quote) = (false, false),
            b'\\' => {
                at += 1;
                has_quote |= text.get(at) == Some(&b'"');
                has_half |= text.get(at) == Some(&b'u') && text.get(at + 1..).is_some_and(is_half);
            }
            _ => {}
        }
        if has_half && has_quote {
            return true;
        }
        at += 1;
    }
    false
}

/// Whether one of the texts ends with a backslash.
#[inline]
pub fn ends_in_backslash(texts: &[u8]) -> bool {
    let mut at = 0;
    while let Some(hit) = texts.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += hit;
        if texts[at..].starts_with(br#"\\""#) {
            return true;
        }
        at += 2;
    }
    false
}

/// A string with the characters that escapes of halves stand for, U+FFFD for one that stands alone, and a last backslash that is read; `None` if
/// it has none of them.
pub fn readable(string: &[u8]) -> Option<Vec<u8>> {
    memchr(b'\\', string)?;
    let (mut out, mut at, mut copied) = (Vec::new(), 0, 0);
    while let Some(hit) = memchr(b'\\', &string[at..]) {
        at += hit;
        if string[at..] == *br#"\\""# {
            out.extend_from_slice(&string[copied..at]);
            out.extend_from_slice(BACKSLASH);
            copied = at + 2;
            break;
        }
        let units = halves(&string[at..]);
        if units.is_empty() {
            at += 2;
            if at >= string.len() {
                break;
            }
            continue;
        }
        out.extend_from_slice(&string[copied..at]);
        at += units.len() * ESCAPE_BYTES;
        copied = at;
        for character in decode_utf16(units) {
            let character = character.unwrap_or(REPLACEMENT_CHARACTER);
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    if copied == 0 {
        return None;
    }
    out.extend_from_slice(&string[copied..]);
    Some(out)
}

/// The halves at the front, one behind the other.
fn halves(text: &[u8]) -> Vec<u16> {
    let mut halves = Vec::new();
    for escape in text.chunks_exact(ESCAPE_BYTES) {
        match escape.strip_prefix(b"\\u") {
            Some(digits) if is_half(digits) => {
                let digits = std::str::from_utf8(digits).unwrap_or_default();
                halves.extend(u16::from_str_radix(digits, 16));
            }
            _ => break,
        }
    }
    halves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_become_whole_characters() {
        // A text, and what it becomes.
        for case in include_str!("../../tests/halves.txt").lines() {
            let (text, expected) = case.split_once(' ').unwrap();
            let found = readable(text.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(found).unwrap(), expected, "{text}");
        }
        for text in [r#""a\u00e9b\"""#, r#""\\ud83e""#, r#""\\\"""#, "\"🤔\""] {
            assert_eq!(readable(text.as_bytes()), None, "{text}");
        }
    }
}
