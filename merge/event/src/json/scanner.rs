//! A scanner of JSON values (RFC 8259). It advances over well-formed text and stops at anything else.

use super::Span;
use super::escape::is_surrogate;
use trace_base::swar::{digits_len, eight, plain_len, sixteen};

/// Maximum depth of nesting, the same as in serde_json.
pub const MAX_DEPTH: u32 = 127;

/// Numbers that are invalid in JSON, but written by Python and other programs.
const ODD_NUMBERS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];

/// Returns the length of the number at the beginning of the text if it is `NaN`, `Infinity` or `-Infinity`.
pub(crate) fn odd_number_len(text: &[u8]) -> Option<usize> {
    let mut odd = ODD_NUMBERS.into_iter();
    odd.find(|number| text.starts_with(number)).map(<[u8]>::len)
}

/// A position in a text. Each method that returns an `Option` returns `None` if the text has a different form there.
pub struct Scanner<'a> {
    /// The text.
    pub bytes: &'a [u8],
    /// Offset of the next byte.
    pub at: usize,
    /// True if `NaN`, `Infinity` and `-Infinity` are accepted.
    lenient: bool,
    /// True if there was such a number.
    pub(crate) odd_numbers: bool,
    /// True if there was an escape that viewers cannot read.
    pub odd_escapes: bool,
}

impl<'a> Scanner<'a> {
    /// Creates a scanner at byte `at` that accepts only valid JSON.
    #[inline(always)]
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Scanner {
            bytes,
            at,
            lenient: false,
            odd_numbers: false,
            odd_escapes: false,
        }
    }

    /// Creates a scanner at byte `at` that also accepts `NaN`, `Infinity` and `-Infinity`, which Python writes.
    #[inline(always)]
    pub fn lenient(bytes: &'a [u8], at: usize) -> Self {
        Scanner {
            lenient: true,
            ..Scanner::new(bytes, at)
        }
    }
}

impl Scanner<'_> {
    /// Returns the next byte, or 0 at the end.
    #[inline(always)]
    pub fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    /// Skips white space.
    #[inline(always)]
    pub fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
    }

    /// Skips one byte if it is the given one.
    #[inline(always)]
    pub fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek() == byte).then(|| self.at += 1)
    }

    /// Skips a value inside `depth` arrays and objects.
    pub fn value(&mut self, depth: u32) -> Option<()> {
        match self.peek() {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b'{' => self.object(depth + 1),
            b'[' => self.array(depth + 1),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.odd_number(self.at),
        }
    }

    /// Skips `NaN`, `Infinity` or `-Infinity`.
    #[cold]
    #[inline(never)]
    fn odd_number(&mut self, start: usize) -> Option<()> {
        if !self.lenient {
            return None;
        }
        self.at = start + odd_number_len(self.bytes.get(start..)?)?;
        self.odd_numbers = true;
        Some(())
    }

    fn object(&mut self, depth: u32) -> Option<()> {
        self.elements(depth, b'}', |scanner| scanner.pair(depth).map(drop))
    }

    fn array(&mut self, depth: u32) -> Option<()> {
        self.elements(depth, b']', |scanner| scanner.value(depth))
    }

    /// Skips an array or object from its opening bracket on. Calls `element` to skip each element.
    #[inline(always)]
    pub(super) fn elements(
        &mut self,
        depth: u32,
        end: u8,
        mut element: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.at += 1;
        self.space();
        if self.expect(end).is_some() {
            return Some(());
        }
        loop {
            element(self)?;
            self.space();
            if self.expect(b',').is_none() {
                return self.expect(end);
            }
            self.space();
        }
    }

    /// Skips a key and its value inside `depth` arrays and objects. Returns the span of the key without its quotes, and of the value.
    #[inline(always)]
    pub fn pair(&mut self, depth: u32) -> Option<(Span, Span)> {
        let start = self.at + 1;
        self.string()?;
        let key = Span::new(start, self.at - 1);
        self.colon()?;
        let start = self.at;
        self.value(depth)?;
        Some((key, self.since(start)))
    }

    /// Skips the colon of a member, and the space around it.
    #[inline(always)]
    pub fn colon(&mut self) -> Option<()> {
        self.space();
        self.expect(b':')?;
        self.space();
        Some(())
    }

    /// Returns the span from `start` to the current position.
    #[inline(always)]
    pub(crate) fn since(&self, start: usize) -> Span {
        Span::new(start, self.at)
    }

    /// Skips a string. Only quotes, control characters and escapes are checked.
    #[inline(always)]
    pub fn string(&mut self) -> Option<()> {
        self.expect(b'"')?;
        loop {
            let len = plain_len(sixteen(self.bytes, self.at));
            self.at += len;
            if len == 16 {
                continue;
            }
            match self.bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    #[inline(never)]
    fn escape(&mut self) -> Option<()> {
        self.at += 1;
        match self.peek() {
            b'\\' => {
                self.at += 1;
                self.odd_escapes |= self.peek() == b'"';
            }
            b'"' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => {
                let digits = self.bytes.get(self.at + 1..self.at + 5)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                self.odd_escapes |= is_surrogate(digits);
                self.at += 5;
            }
            _ => return None,
        }
        Some(())
    }

    #[inline(always)]
    fn number(&mut self) -> Option<()> {
        let first = self.at;
        if self.peek() == b'-' {
            self.at += 1;
        }
        let start = self.at;
        if self.digits().is_none() {
            return self.odd_number(first);
        }
        if self.bytes[start] == b'0' && self.at > start + 1 {
            return None;
        }
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.exponent()?;
        }
        Some(())
    }

    #[inline(never)]
    fn exponent(&mut self) -> Option<()> {
        self.at += 1;
        if matches!(self.peek(), b'+' | b'-') {
            self.at += 1;
        }
        self.digits()
    }

    #[inline(always)]
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        loop {
            let len = digits_len(eight(self.bytes, self.at));
            self.at += len;
            if len < 8 {
                return (self.at > start).then_some(());
            }
        }
    }

    #[inline(always)]
    pub(crate) fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.bytes[self.at..]
            .starts_with(text)
            .then(|| self.at += text.len())
    }
}
