//! Escapes that are valid in JSON, but that Perfetto cannot read.
//!
//! JSON, as Python writes it, has two escapes for a character beyond U+FFFF, its surrogates (`\ud83e\udd14`). Perfetto reads them as letters, and refuses a
//! text that has an escaped quote as well. It also reads a quote after an escaped backslash as part of the text, which then never ends.

use memchr::memchr;
use std::char::{REPLACEMENT_CHARACTER, decode_utf16};

/// Length of the escape of a surrogate: backslash, `u`, four digits.
const ESCAPE_BYTES: usize = 6;
/// Escape of a backslash that viewers can read even before the closing quote.
const BACKSLASH: &[u8] = b"\\u005c";

/// Returns true if the digits after `\u` are those of a surrogate.
#[inline]
pub(super) fn is_surrogate(digits: &[u8]) -> bool {
    matches!(
        digits,
        [b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F', ..]
    )
}

/// Returns true if one string in the text has both an escaped quote and an escaped surrogate. Viewers cannot read such a text.
pub(crate) fn is_unreadable(text: &[u8]) -> bool {
    let (mut has_surrogate, mut has_quote, mut at) = (false, false, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => (has_surrogate, has_quote) = (false, false),
            b'\\' => {
                at += 1;
                has_quote |= text.get(at) == Some(&b'"');
                has_surrogate |=
                    text.get(at) == Some(&b'u') && text.get(at + 1..).is_some_and(is_surrogate);
            }
            _ => {}
        }
        if has_surrogate && has_quote {
            return true;
        }
        at += 1;
    }
    false
}

/// Returns true if one of the strings in the text ends with a backslash.
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

/// Replaces escapes in a JSON string that viewers cannot read. A pair of surrogates becomes its character, a lone surrogate becomes U+FFFD, and a backslash at
/// the end becomes `\u005c`. Returns `None` if there are no such escapes.
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
        let units = surrogates(&string[at..]);
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

/// Returns the escaped surrogates at the beginning of the text.
fn surrogates(text: &[u8]) -> Vec<u16> {
    let mut units = Vec::new();
    for escape in text.chunks_exact(ESCAPE_BYTES) {
        match escape.strip_prefix(b"\\u") {
            Some(digits) if is_surrogate(digits) => {
                let digits = std::str::from_utf8(digits).unwrap_or_default();
                units.extend(u16::from_str_radix(digits, 16));
            }
            _ => break,
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrogates_become_characters() {
        // A text and the expected result.
        for case in include_str!("../../tests/surrogates.txt").lines() {
            let (text, expected) = case.split_once(' ').unwrap();
            let found = readable(text.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(found).unwrap(), expected, "{text}");
        }
        for text in [r#""a\u00e9b\"""#, r#""\\ud83e""#, r#""\\\"""#, "\"🤔\""] {
            assert_eq!(readable(text.as_bytes()), None, "{text}");
        }
    }
}
