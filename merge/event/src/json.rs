//! A validating scanner for one JSON object, which finds the members of an event.
//!
//! In: arbitrary bytes. Out: the spans of the top-level members that the merge needs, if the bytes are one JSON object (RFC 8259). UTF-8 is not checked here.
//! Nothing is allocated. Numbers that are invalid in JSON (`NaN`) are accepted and reported.

mod escape;
mod scanner;

pub(crate) use escape::is_unreadable;
pub use escape::{ends_in_backslash, readable};
pub(crate) use scanner::odd_number_len;
pub use scanner::{MAX_DEPTH, Scanner};

use crate::member::is_odd;
use memchr::memchr2;
use std::borrow::Cow;

/// A byte range of a line. If `end` is 0, the member is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

impl Span {
    /// Creates a span from `start` up to, but not including, `end`.
    #[inline(always)]
    pub const fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// Returns true if the member exists.
    #[inline]
    pub fn is_some(self) -> bool {
        self.end != 0
    }

    /// Returns the bytes of the member, or an empty slice if it is absent.
    #[inline]
    pub fn slice(self, line: &[u8]) -> &[u8] {
        line.get(self.start..self.end).unwrap_or_default()
    }
}

/// Spans of the values of the top-level members. If a key is repeated, the last one counts.
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
    /// `id`, including its key
    pub id: Span,
    /// `id2`, including its key
    pub id2: Span,
    /// `bind_id`, including its key
    pub bind_id: Span,
    /// `name`
    pub name: Span,
    /// `cat`
    pub cat: Span,
    /// `args`
    pub args: Span,
    /// True if one of these keys appears more than once.
    pub repeated: bool,
    /// True if the object has a number that is invalid in JSON: `NaN`, `Infinity` or `-Infinity`.
    pub odd_numbers: bool,
    /// True if the object has an escape that viewers cannot read: a surrogate such as `\ud83e`, or a backslash at the end of a text.
    pub odd_escapes: bool,
    /// True if a name has invisible characters.
    pub hidden: bool,
    /// For an event, true if it has to be mended for viewers. For an object, true if a member other than these may have to be mended.
    pub odd: bool,
}

/// Returns the offset after the string that begins at `start`.
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

/// Finds the members that determine the thread and time of an event. [`scan_object`] must have accepted the line without a repeated key. The rest of the line
/// after the last of these members is not scanned.
pub(crate) fn scan_front(line: &[u8]) -> Option<Fields> {
    let mut scanner = Scanner::new(line, 0);
    let mut fields = Fields::default();
    scanner.space();
    scanner.expect(b'{')?;
    scanner.space();
    while !fields.has_thread_and_time(line) {
        scanner.member(&mut fields)?;
        if scanner.expect(b',').is_none() {
            break;
        }
        scanner.space();
    }
    Some(fields)
}

impl Fields {
    /// Returns true if the line is mended when it is written.
    #[inline(always)]
    pub fn is_mended(&self) -> bool {
        self.odd_numbers | self.odd_escapes | self.hidden | self.odd
    }

    /// Returns true if no other member of the event has to be patched. Always returns false for flows and metadata, which are scanned to the end.
    #[inline(always)]
    fn has_thread_and_time(&self, line: &[u8]) -> bool {
        let timed = self.pid.is_some() && self.tid.is_some() && self.ts.is_some();
        timed
            && match self.ph.slice(line) {
                b"\"X\"" => self.dur.is_some(),
                b"\"i\"" | b"\"C\"" | b"\"B\"" | b"\"E\"" => true,
                _ => false,
            }
    }
}

/// Scans a line that must be exactly one JSON object, with optional white space around it. `NaN` and the like are accepted.
pub fn scan_object(line: &[u8]) -> Option<Fields> {
    let mut scanner = Scanner::lenient(line, 0);
    let mut fields = Fields::default();
    scanner.space();
    scanner.members(&mut fields)?;
    scanner.space();
    (scanner.at == line.len()).then_some(fields)
}

/// Scans the object at the beginning of `bytes`, whatever follows it. Returns its members and its length.
///
/// # Errors
/// Returns the number of well-formed bytes if there is no complete object.
pub fn scan_object_at_front(bytes: &[u8]) -> Result<(Fields, usize), usize> {
    let mut scanner = Scanner::lenient(bytes, 0);
    let mut fields = Fields::default();
    let found = scanner.members(&mut fields);
    found.map(|()| (fields, scanner.at)).ok_or(scanner.at)
}

impl Scanner<'_> {
    /// Scans the top-level object and stores its fields.
    fn members(&mut self, fields: &mut Fields) -> Option<()> {
        if self.peek() != b'{' {
            return None;
        }
        self.elements(1, b'}', |scanner| scanner.member(fields))?;
        (fields.odd_numbers, fields.odd_escapes) = (self.odd_numbers, self.odd_escapes);
        Some(())
    }

    /// Scans a key and its value, and the space after them.
    #[inline(always)]
    fn member(&mut self, fields: &mut Fields) -> Option<()> {
        let (key, value) = self.pair(1)?;
        set_field(fields, self.bytes, key, value);
        self.space();
        Some(())
    }
}

/// Stores the span of a member if the merge needs it.
#[inline(always)]
fn set_field(fields: &mut Fields, bytes: &[u8], key: Span, value: Span) {
    let from_key = Span::new(key.start - 1, value.end);
    let (field, span) = match key.slice(bytes) {
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
            fields.odd |= is_odd(key, value.slice(bytes));
            return;
        }
    };
    fields.repeated |= field.is_some();
    *field = span;
}

/// An iterator over the members of an object. It returns each key, without its quotes, and its value, and ends at the first error.
pub struct Members<'a> {
    scanner: Scanner<'a>,
    /// Offset of the end of the text.
    end: usize,
}

impl<'a> Members<'a> {
    /// Iterates over the members of a JSON object. Other text has no members.
    #[inline]
    pub fn new(object: &'a [u8]) -> Members<'a> {
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
        Some((key.slice(scanner.bytes), value.slice(scanner.bytes)))
    }
}

/// Returns the value of the last member of this name, which is the one that viewers use.
#[inline]
pub fn last_member<'a>(object: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let named = Members::new(object).filter(|(key, _)| *key == name);
    named.last().map(|(_, value)| value)
}

/// Creates an object from members whose keys have no quotes.
pub fn build_object<'a>(members: impl IntoIterator<Item = (&'a [u8], Cow<'a, [u8]>)>) -> Vec<u8> {
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
