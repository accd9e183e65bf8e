//! Spells out invisible characters, which could make a name look like another one.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns true for a character that shows nothing by itself: controls, marks that change the
/// direction of writing, joiners, and others without a width.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns the text with each invisible character spelled out, as in `<U+202E>`. This is plain
/// ASCII, which viewers, terminals and JSON readers all show as it is.
pub fn visible(text: &str) -> Cow<'_, str> {
    if is_visible(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    spell_out(text, &mut out);
    Cow::Owned(out)
}

/// Returns the text with each invisible character spelled out, like [`visible`], or `None` if there
/// is not enough memory.
pub fn try_visible(text: &str) -> Option<Cow<'_, str>> {
    /// Maximum length of a spelled-out character in bytes.
    const SPELLED_BYTES: usize = "<U+E007F>".len();
    if is_visible(text) {
        return Some(Cow::Borrowed(text));
    }
    let invisible = text.chars().filter(|c| is_invisible(*c)).count();
    let mut out = String::new();
    let bytes = text.len() + invisible * SPELLED_BYTES;
    out.try_reserve_exact(bytes).ok()?;
    spell_out(text, &mut out);
    Some(Cow::Owned(out))
}

/// Returns true if a text contains no invisible characters.
fn is_visible(text: &str) -> bool {
    let is_ascii = |byte: &u8| matches!(byte, 0x20..=0x7e);
    text.as_bytes().iter().all(is_ascii) || !text.contains(is_invisible)
}

/// Appends `text` to `out`, with each invisible character spelled out.
fn spell_out(text: &str, out: &mut String) {
    for c in text.chars() {
        if is_invisible(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "<U+{:04X}>", u32::from(c));
        } else {
            out.push(c);
        }
    }
}

/// Returns lines of text for a terminal with each invisible character spelled out, like
/// [`visible`], but keeps the newlines between them.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| c != '\n' && is_invisible(c)) {
        return Cow::Borrowed(text);
    }
    let lines: Vec<_> = text.split('\n').map(visible).collect();
    Cow::Owned(lines.join("\n"))
}

/// Returns JSON text with each invisible character written as an escape, so that its meaning stays
/// the same. Newlines between its members stay.
pub fn visible_json(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| c != '\n' && is_invisible(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c == '\n' || !is_invisible(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_19_invisible_characters_are_spelled_out() {
        for (text, shown) in [
            ("wörker-0 · 東京 👩", "wörker-0 · 東京 👩"),
            ("", ""),
            ("a\u{202e}b", "a<U+202E>b"),
            ("\u{200b}\u{2066}x\u{2069}", "<U+200B><U+2066>x<U+2069>"),
            ("\u{feff}n\u{2028}m", "<U+FEFF>n<U+2028>m"),
            (
                "a\u{1b}[2J\n\u{9b}\u{7f}",
                "a<U+001B>[2J<U+000A><U+009B><U+007F>",
            ),
            ("\u{e0041}", "<U+E0041>"),
        ] {
            assert_eq!(visible(text), shown);
            assert_eq!(try_visible(text).unwrap(), shown);
        }
    }

    #[test]
    fn issue_19_lines_and_json_keep_their_structure() {
        assert_eq!(visible_lines("a\u{202e}b\nc\t"), "a<U+202E>b\nc<U+0009>");
        assert_eq!(visible_lines("a\nb"), "a\nb");
        let json = "{\"a\":\"\u{202e}x\u{e0041}\",\n\"b\":1}";
        let escaped = "{\"a\":\"\\u202ex\\udb40\\udc41\",\n\"b\":1}";
        assert_eq!(visible_json(json), escaped);
    }
}
