//! A validating scanner for one JSON object: RFC 8259 grammar, and where the event fields stand.
//!
//! In: bytes that may be anything. Out: whether they are one JSON object, and the spans of the top-level members the merge
//! looks at. UTF-8 is not checked here. Nothing is allocated. Numbers that JSON has not (`NaN`) pass, and are told.

mod escape;
mod scanner;

pub(crate) use escape::is_unreadable;
pub use escape::{ends_in_backslash, readable};
pub(crate) use scanner::odd_number_len;
pub use scanner::{MAX_DEPTH, Scanner};

use crate::member::is_odd;
use memchr::memchr2;
use std::borrow::Cow;

/// A byte range of a line; `end` 0 means absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// Returns the bytes from `start` on and before `end`.
    #[inline(always)]
    pub const fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// Tells whether the member is there.
    #[inline]
    pub fn is_some(self) -> bool {
        self.end != 0
    }

    /// The bytes, empty if absent.
    #[inline]
    pub fn of(self, line: &[u8]) -> &[u8] {
        line.get(self.start..self.end).unwrap_or_default()
    }
}

/// Where the values of the top-level members stand; of a repeated key the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// `ph`
    pub ph: Span,
    /// `ts`
    pub ts: Span,
    /// `dur`
    pub dur: Span,
    /// `pid`
    pub pid: Span,
    /// `tid`
    pub tid: Span,
    /// `id`, from its key on
    pub id: Span,
    /// `id2`, from its key on
    pub id2: Span,
    /// `bind_id`, from its key on
    pub bind_id: Span,
    /// `name`
    pub name: Span,
    /// `cat`
    pub cat: Span,
    /// `args`
    pub args: Span,
    /// Whether one of these keys stands there more than once.
    pub repeated: bool,
    /// Whether the object has a number that JSON has not: `NaN`, `Infinity` or `-Infinity`.
    pub odd_numbers: bool,
    /// Whether it has an escape that viewers do not read: of half a character, such as `\ud83e`, or of a backslash that ends a text.
    pub odd_escapes: bool,
    /// Whether a name in it has characters that nobody sees.
    pub hidden: bool,
    /// Of an event: whether it has to be mended for viewers. Of an object: whether a member beside these may have to be.
    pub odd: bool,
}

/// Where the string that begins at `start` ends.
#[inline]
pub fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(hit) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += hit;
        if text[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}

/// Finds the members that tell where an event belongs, in a line that [`scan_object`] has accepted without a repeated key; what comes
/// after the last of them is not looked at.
pub(crate) fn scan_front(line: &[u8]) -> Option<Fields> {
    let mut scanner = Scanner::new(line, 0);
    let mut fields = Fields::default();
    scanner.space();
    scanner.expect(b'{')?;
    scanner.space();
    while !fields.place_an_event(line) {
        scanner.member(&mut fields)?;
        if scanner.expect(b',').is_none() {
            break;
        }
        scanner.space();
    }
    Some(fields)
}

impl Fields {
    /// Whether something of the line is mended where it is written.
    #[inline(always)]
    pub fn is_mended(&self) -> bool {
        self.odd_numbers | self.odd_escapes | self.hidden | self.odd
    }

    /// Whether nothing else of the event can need another text: flows and metadata are read to their end.
    #[inline(always)]
    fn place_an_event(&self, line: &[u8]) -> bool {
        let timed = self.pid.is_some() && self.tid.is_some() && self.ts.is_some();
        timed
            && match self.ph.of(line) {
                b"\"X\"" => self.dur.is_some(),
                b"\"i\"" | b"\"C\"" | b"\"B\"" | b"\"E\"" => true,
                _ => false,
            }
    }
}

/// Scans a line that must be exactly one JSON object (white space around it allowed), but for numbers that JSON has not.
pub fn scan_object(line: &[u8]) -> Option<Fields> {
    let mut scanner = Scanner::lenient(line, 0);
    let mut fields = Fields::default();
    scanner.space();
    scanner.members(&mut fields)?;
    scanner.space();
    (scanner.at == line.len()).then_some(fields)
}

/// Scans the object at the front of `bytes`, whatever stands behind it: its members and its length.
///
/// # Errors
/// How far it is well formed, if it is no object.
pub fn scan_object_at_front(bytes: &[u8]) -> Result<(Fields, usize), usize> {
    let mut scanner = Scanner::lenient(bytes, 0);
    let mut fields = Fields::default();
    let found = scanner.members(&mut fields);
    found.map(|()| (fields, scanner.at)).ok_or(scanner.at)
}

impl Scanner<'_> {
    /// The top-level object, noting the fields.
    fn members(&mut self, fields: &mut Fields) -> Option<()> {
        if self.peek() != b'{' {
            return None;
        }
        self.elements(1, b'}', |scanner| scanner.member(fields))?;
        (fields.odd_numbers, fields.odd_escapes) = (self.odd_numbers, self.odd_escapes);
        Some(())
    }

    /// A key and its value, and the space after them.
    #[inline(always)]
    fn member(&mut self, fields: &mut Fields) -> Option<()> {
        let (key, value) = self.pair(1)?;
        note(fields, self.bytes, key, value);
        self.space();
        Some(())
    }
}

/// Notes the value of a member, if it is one that is looked at.
#[inline(always)]
fn note(fields: &mut Fields, bytes: &[u8], key: Span, value: Span) {
    let from_key = Span::new(key.start - 1, value.end);
    let (field, span) = match key.of(bytes) {
        b"ph" => (&mut fields.ph, value),
        b"ts" => (&mut fields.ts, value),
        b"dur" => (&mut fields.dur, value),
        b"pid" => (&mut fields.pid, value),
        b"tid" => (&mut fields.tid, value),
        b"id" => (&mut fields.id, from_key),
        b"id2" => (&mut fields.id2, from_key),
        b"bind_id" => (&mut fields.bind_id, from_key),
        b"name" => (&mut fields.name, value),
        b"cat" => (&mut fields.cat, value),
        b"args" => (&mut fields.args, value),
        key => {
            fields.odd |= is_odd(key, value.of(bytes));
            return;
        }
    };
    fields.repeated |= field.is_some();
    *field = span;
}

/// Goes over the members of an object: key, without its quotes, and value. It ends at what is not well formed.
pub struct Members<'a> {
    scanner: Scanner<'a>,
    /// Offset of the end of the text.
    end: usize,
}

impl<'a> Members<'a> {
    /// The members of a text that is a JSON object; none if it is something else.
    #[inline]
    pub fn of(object: &'a [u8]) -> Members<'a> {
        let mut scanner = Scanner::lenient(object, 0);
        scanner.space();
        // If the text is not an object, the iterator finds no key.
        let _ = scanner.expect(b'{');
        let end = object.trim_ascii_end().len();
        Members { scanner, end }
    }

    /// Returns true if the next byte is the object's closing brace and the last byte of the text.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.scanner.peek() == b'}' && self.scanner.at + 1 == self.end
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let scanner = &mut self.scanner;
        scanner.space();
        if scanner.expect(b',').is_some() {
            scanner.space();
        }
        let (key, value) = scanner.pair(1)?;
        scanner.space();
        Some((key.of(scanner.bytes), value.of(scanner.bytes)))
    }
}

/// Returns the value of the last member of this name, as viewers take it.
#[inline]
pub fn last_member<'a>(object: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let named = Members::of(object).filter(|(key, _)| *key == name);
    named.last().map(|(_, value)| value)
}

/// Returns an object of these members, whose keys are given without quotes.
pub fn object_of<'a>(members: impl IntoIterator<Item = (&'a [u8], Cow<'a, [u8]>)>) -> Vec<u8> {
    let mut out = vec![b'{'];
    for (key, value) in members {
        put_member(&mut out, key, &value);
    }
    out.push(b'}');
    out
}

/// Appends a member to an object that is not closed yet.
pub fn put_member(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    if out.len() > 1 {
        out.push(b',');
    }
    for part in [&b"\""[..], key, b"\":", value] {
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::Kind;
    use crate::line::parse;
    use crate::sample::mutate;
    use serde_json::value::RawValue;
    use std::collections::HashMap;

    fn serde_accepts(line: &[u8]) -> bool {
        std::str::from_utf8(line)
            .is_ok_and(|text| serde_json::from_str::<HashMap<String, &RawValue>>(text).is_ok())
    }

    fn ours_accepts(line: &[u8]) -> bool {
        let strict = |fields: Fields| !fields.odd_numbers;
        std::str::from_utf8(line).is_ok() && scan_object(line).is_some_and(strict)
    }

    #[test]
    fn nests_as_deep_as_serde_json_values() {
        for levels in 120..135 {
            let text = format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
            let serde = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            assert_eq!(scan_object(text.as_bytes()).is_some(), serde, "{levels}");
        }
    }

    #[test]
    fn agrees_with_serde_json_on_mutated_lines() {
        let seeds: [&[u8]; 4] = [
            br#"{"ph":"X","pid":4711,"tid":4712,"ts":81234567.891,"dur":1250.004,"name":"a\u00e9\"b","cat":"w","args":{"p":1,"d":[7,-1e3,null,true],"s":"x"}}"#,
            "{\"name\" : \"té\", \"ph\":\"i\", \"ts\":1, \"pid\":-1, \"args\":{\"a\":{\"b\":[[],{}]}}}".as_bytes(),
            br#"{"ph":"f","pid":1,"tid":2,"ts":3.000,"id2":{"global":"0x1f"},"bp":"e","name":"r","cat":"c"}"#,
            "{\"name\":\"té\",\"cat\":\"w\",\"ph\":\"X\",\"ts\":2431580341,\"dur\":12,\"pid\":7,\"tid\":139662951478848,\"args\":{\"f\":-2.5e3,\"s\":[\"é\\n\"]}}".as_bytes(),
        ];
        let mut accepted = 0;
        mutate(&seeds, 200_000, |line| {
            let text = String::from_utf8_lossy(line);
            let expected = serde_accepts(line);
            assert_eq!(ours_accepts(line), expected, "{text}");
            let refused = matches!(parse(line), Err(Kind::BadUtf8 | Kind::BadJson));
            assert_eq!(!refused, expected, "{text}");
            let is_utf8 = std::str::from_utf8(line).is_ok();
            assert_eq!(parse(line) != Err(Kind::BadUtf8), is_utf8, "{text}");
            accepted += usize::from(expected);
        });
        assert!(
            accepted > 10_000,
            "the mutations must leave some lines valid, got {accepted}"
        );
    }
}
