//! The members of an object, one after the other.

use super::Span;
use super::scanner::Scanner;

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

impl Iterator for Members<'_> {
    type Item = (Span, Span);

    #[inline]
    fn next(&mut self) -> Option<(Span, Span)> {
        let scanner = &mut self.scanner;
        scanner.space();
        if scanner.peek() == b',' {
            scanner.at += 1;
            scanner.space();
        }
        let start = scanner.at + 1;
        scanner.string()?;
        let end = scanner.at - 1;
        let key = Span { start, end };
        scanner.space();
        scanner.expect(b':')?;
        scanner.space();
        let start = scanner.at;
        scanner.value(1)?;
        let end = scanner.at;
        scanner.space();
        Some((key, Span { start, end }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text, the members that are found in it, and whether it ends where the object does.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], bool);

    #[test]
    fn every_member_comes_once() {
        let table: [Case; 7] = [
            ("{}", &[], true),
            (
                r#" { "a" : 1 , "b":{"c":[2,"}"]},"a":"x" } "#,
                &[("a", "1"), ("b", r#"{"c":[2,"}"]}"#), ("a", "\"x\"")],
                true,
            ),
            (r#"{"":NaN}"#, &[("", "NaN")], true),
            (r#"{"a":1,"b":x}"#, &[("a", "1")], false),
            ("[1]", &[], false),
            (r#"{"a":1},"b":2"#, &[("a", "1")], false),
            ("", &[], false),
        ];
        for (text, expected, is_whole) in table {
            let mut members = Members::of(text.as_bytes());
            let words = |span: Span| std::str::from_utf8(span.of(text.as_bytes())).unwrap();
            let found: Vec<_> = members
                .by_ref()
                .map(|(key, value)| (words(key), words(value)))
                .collect();
            assert_eq!(found, expected, "{text}");
            assert_eq!(members.is_at_end(), is_whole, "{text}");
        }
    }
}
