//! Events as Perfetto reads them, which minds less than JSON does.
//!
//! It takes an event apart into its members and looks no deeper: of an object or array in one it finds the end and nothing else. A text
//! ends at the first quote that is not escaped, whatever is in it, and a comma may stand before the `}`.

use trace_event::json::{Fields, Scanner, Span, note};

/// Why Perfetto does not read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It waits for the rest.
    Cut,
    /// It gives up.
    Bad,
}

/// The members of an object, one after the other.
pub(super) struct Members<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The fields of the event at `start`, and where it ends; else why it cannot be read, and where.
pub(super) fn read(bytes: &[u8], start: usize) -> Result<(Fields, usize), (Unread, usize)> {
    let mut members = Members { bytes, at: start };
    match members.fields() {
        Ok(fields) => Ok((fields, members.at)),
        Err(unread) => Err((unread, members.at)),
    }
}

/// Where the value at `start` ends; else why it cannot be read, and where.
pub(super) fn skip(bytes: &[u8], start: usize) -> Result<usize, (Unread, usize)> {
    let mut members = Members { bytes, at: start };
    match members.value() {
        Ok(()) => Ok(members.at),
        Err(unread) => Err((unread, members.at)),
    }
}

/// The value that an object has under `key`, the last one if there are more; empty if there is none.
pub(super) fn member<'a>(object: &'a [u8], key: &[u8]) -> &'a [u8] {
    let mut found = Span::default();
    if let Ok(mut members) = Members::open(object) {
        while let Ok(Some((name, value))) = members.member() {
            if name.of(object) == key {
                found = value;
            }
        }
    }
    found.of(object)
}

impl<'a> Members<'a> {
    /// The members of an object.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Members<'a>, Unread> {
        let mut members = Members { bytes, at: 0 };
        members.begin()?;
        Ok(members)
    }

    /// The key, without its quotes, and the value of the next member; `None` at the end of the object.
    pub(super) fn member(&mut self) -> Result<Option<(Span, Span)>, Unread> {
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(None);
        }
        let key = self.text()?;
        self.space()?;
        self.expect(b':')?;
        self.space()?;
        let start = self.at;
        self.value()?;
        let value = Span {
            start,
            end: self.at,
        };
        self.space()?;
        match self.peek()? {
            b',' => {
                self.at += 1;
                self.space()?;
            }
            b'}' => {}
            _ => return Err(Unread::Bad),
        }
        Ok(Some((key, value)))
    }

    fn fields(&mut self) -> Result<Fields, Unread> {
        let mut fields = Fields::default();
        self.begin()?;
        while let Some((key, value)) = self.member()? {
            note(&mut fields, self.bytes, key, value);
        }
        Ok(fields)
    }

    fn begin(&mut self) -> Result<(), Unread> {
        self.expect(b'{')?;
        self.space()
    }

    fn value(&mut self) -> Result<(), Unread> {
        match self.peek()? {
            b'{' => self.block(b'{', b'}'),
            b'[' => self.block(b'[', b']'),
            b'"' => self.text().map(drop),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.number(),
        }
    }

    /// An object or array: only its own kind of brackets and texts are looked at.
    fn block(&mut self, open: u8, close: u8) -> Result<(), Unread> {
        let mut depth = 0_usize;
        loop {
            let rest = &self.bytes[self.at..];
            self.at += memchr::memchr3(b'"', open, close, rest).ok_or(Unread::Cut)?;
            let byte = self.bytes[self.at];
            if byte == b'"' {
                self.at = end_of_text(self.bytes, self.at + 1).ok_or(Unread::Cut)? + 1;
                continue;
            }
            self.at += 1;
            if byte == open {
                depth += 1;
            } else if depth == 1 {
                return Ok(());
            } else {
                depth -= 1;
            }
        }
    }

    /// A text; its span has no quotes.
    fn text(&mut self) -> Result<Span, Unread> {
        self.expect(b'"')?;
        let start = self.at;
        let end = end_of_text(self.bytes, start).ok_or(Unread::Cut)?;
        self.at = end + 1;
        Ok(Span { start, end })
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), Unread> {
        let rest = &self.bytes[self.at..];
        match rest.get(..word.len()) {
            None => Err(Unread::Cut),
            Some(there) if there == word => {
                self.at += word.len();
                Ok(())
            }
            Some(_) => Err(Unread::Bad),
        }
    }

    fn number(&mut self) -> Result<(), Unread> {
        let mut scanner = Scanner::new(self.bytes, self.at);
        let is_number = scanner.value(1).is_some();
        if scanner.at >= self.bytes.len() {
            return Err(Unread::Cut);
        }
        let digits = std::str::from_utf8(&self.bytes[self.at..scanner.at]).unwrap_or_default();
        let is_finite = digits.parse::<f64>().is_ok_and(f64::is_finite);
        self.at = scanner.at;
        (is_number && is_finite).then_some(()).ok_or(Unread::Bad)
    }

    fn space(&mut self) -> Result<(), Unread> {
        while matches!(self.peek()?, b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
        Ok(())
    }

    fn expect(&mut self, byte: u8) -> Result<(), Unread> {
        if self.peek()? != byte {
            return Err(Unread::Bad);
        }
        self.at += 1;
        Ok(())
    }

    fn peek(&self) -> Result<u8, Unread> {
        self.bytes.get(self.at).copied().ok_or(Unread::Cut)
    }
}

/// Where the quote stands that ends the text from `start` on.
fn end_of_text(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        at += memchr::memchr(b'"', bytes.get(at..)?)?;
        let before = bytes[start..at].iter().rev();
        if before.take_while(|byte| **byte == b'\\').count() % 2 == 0 {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_events_as_perfetto_does() {
        let bad = Some(Unread::Bad);
        let table: [(&[u8], Option<Unread>); 22] = [
            (br#"{"a":1,"b":[{"c":2}]}"#, None),
            (br#"{"a":{"b":NaN,]}, "c" : "x"}"#, None),
            (b"{\"a\":\"x\ty\x01\xff\"}", None),
            (br#"{"a":"\x\q","b\"":"\\"}"#, None),
            (br#"{"a":1,}"#, None),
            (br"{}", None),
            (br#"{"a":NaN}"#, bad),
            (br#"{"a":-Infinity}"#, bad),
            (br#"{"a":01}"#, bad),
            (br#"{"a":nulx}"#, bad),
            (br#"{"a":"\u12g4\ud83d\u"}"#, None),
            (br#"{"a":-1.5e300}"#, None),
            (br#"{"a":1e999}"#, bad),
            (br#"{"a":1 "b":2}"#, bad),
            (br#"{,"a":1}"#, bad),
            (br#"{"a":1,,"b":2}"#, bad),
            (br"[1]", bad),
            (br#"{"a":1"#, Some(Unread::Cut)),
            (br#"{"a":"x\""#, Some(Unread::Cut)),
            (br#"{"a":{"b":[}"#, Some(Unread::Cut)),
            (br#"{"a":nul"#, Some(Unread::Cut)),
            (br#"{"a":-"#, Some(Unread::Cut)),
        ];
        for (text, unread) in table {
            let result = read(text, 0);
            let name = String::from_utf8_lossy(text);
            assert_eq!(result.err().map(|(unread, _)| unread), unread, "{name}");
            if let Ok((_, end)) = result {
                assert_eq!(end, text.len(), "{name}");
            }
        }
    }

    #[test]
    fn finds_fields_and_members() {
        let text = br#" {"ts":1,"id":"x","ts" : 2,"args":{"ts":3}}"#;
        let (fields, _) = read(text, 1).expect("an event");
        assert_eq!(fields.ts.of(text), b"2");
        assert_eq!(fields.id.of(text), br#""id":"x""#);
        assert_eq!(member(&text[1..], b"ts"), b"2");
        assert_eq!(member(&text[1..], b"tts"), b"");
        assert_eq!(member(b"3", b"ts"), b"");
    }
}
