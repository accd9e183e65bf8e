//! The members of an object, one after the other.

use super::scanner::Scanner;
use std::borrow::Cow;

/// Goes over the members of an object: key, without its quotes, and value. It ends at what is not well formed.
pub struct Members<'a> {
    scanner: Scanner<'a>,
    /// Where the text ends.
    end: usize,
}

impl<'a> Members<'a> {
    /// The members of a text that is a JSON object; none if it is something else.
    #[inline]
    pub fn of(object: &'a [u8]) -> Members<'a> {
        let mut scanner = Scanner::lenient(object, 0);
        scanner.space();
        // What is no object has no key behind its begin.
        let _ = scanner.expect(b'{');
        let end = object.trim_ascii_end().len();
        Members { scanner, end }
    }

    /// Whether it stands before the end of the object, and nothing comes behind that.
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
