//! Lines in the key order of pypto-serving's recorder: `name cat ph [s] ts [dur] pid tid args`, whole microseconds, no white space.
//!
//! In: a line that is known to be UTF-8. Out: the event that the general scanner would find, in less than half of its time; or nothing, at
//! the first byte that is not as expected, which says nothing about the line.

use crate::json::{Fields, Scanner, Span};
use crate::line::Event;
use crate::words::digits;

/// Parses a whole line: every byte of it is checked.
#[inline]
pub(crate) fn parse(line: &[u8]) -> Option<Event<'_>> {
    let (mut event, at) = parse_front(line)?;
    let mut front = Front::new(line, at);
    if front.literal(br#","args":"#).is_some() {
        let start = front.scanner.at;
        front.scanner.value(1)?;
        event.fields.args = front.since(start);
    }
    front.literal(b"}")?;
    (front.scanner.at == line.len()).then_some(event)
}

/// Parses the front of a line, up to its `tid`; tells how far that is.
#[inline]
pub(crate) fn parse_front(line: &[u8]) -> Option<(Event<'_>, usize)> {
    let mut front = Front::new(line, 0);
    let mut fields = Fields::default();
    front.literal(br#"{"name":"#)?;
    fields.name = front.text()?;
    front.literal(br#","cat":"#)?;
    fields.cat = front.text()?;
    front.literal(br#","ph":"#)?;
    let (phase, ts_us, pid, tid);
    (phase, fields.ph) = front.letter()?;
    match phase {
        b'X' | b'C' | b'B' | b'E' => {}
        b'i' => {
            front.literal(br#","s":"#)?;
            front.letter()?;
        }
        _ => return None,
    }
    (ts_us, fields.ts) = front.number(br#","ts":"#)?;
    let mut dur_us = 0;
    if phase == b'X' {
        (dur_us, fields.dur) = front.number(br#","dur":"#)?;
    }
    (pid, fields.pid) = front.number(br#","pid":"#)?;
    (tid, fields.tid) = front.number(br#","tid":"#)?;
    let event = Event {
        line,
        phase,
        pid,
        tid,
        ts_ns: ts_us * 1000,
        dur_ns: dur_us * 1000,
        fields,
        rounds_dur: false,
    };
    Some((event, front.scanner.at))
}

/// Reads literals and values off a line.
struct Front<'a> {
    scanner: Scanner<'a>,
}

impl<'a> Front<'a> {
    #[inline(always)]
    fn new(bytes: &'a [u8], at: usize) -> Self {
        Front {
            scanner: Scanner { bytes, at },
        }
    }

    #[inline(always)]
    fn since(&self, start: usize) -> Span {
        Span {
            start,
            end: self.scanner.at,
        }
    }

    #[inline(always)]
    fn literal(&mut self, text: &[u8]) -> Option<()> {
        let Scanner { bytes, at } = &mut self.scanner;
        bytes
            .get(*at..)?
            .starts_with(text)
            .then(|| *at += text.len())
    }

    #[inline(always)]
    fn text(&mut self) -> Option<Span> {
        let start = self.scanner.at;
        self.scanner.string()?;
        Some(self.since(start))
    }

    /// A string of one letter.
    #[inline(always)]
    fn letter(&mut self) -> Option<(u8, Span)> {
        let start = self.scanner.at;
        let [b'"', letter, b'"'] = *self.scanner.bytes.get(start..)?.first_chunk()? else {
            return None;
        };
        self.scanner.at += 3;
        letter
            .is_ascii_alphabetic()
            .then(|| (letter, self.since(start)))
    }

    /// A whole number after its key. Long ones, and zeros before others, are left to the general scanner.
    #[inline(always)]
    fn number(&mut self, key: &[u8]) -> Option<(i64, Span)> {
        self.literal(key)?;
        let start = self.scanner.at;
        let (number, len) = digits(self.scanner.bytes, start)?;
        self.scanner.at += len;
        let has_zeros = len > 1 && self.scanner.bytes[start] == b'0';
        (!has_zeros).then(|| (number, self.since(start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{parse_again, parse_any};

    const LINES: [&str; 5] = [
        r#"{"name":"kernel","cat":"worker","ph":"X","ts":2431580341,"dur":1250,"pid":23149,"tid":139662951478848,"args":{"k":1,"f":-2.5e3,"s":["a\"b",null]}}"#,
        r#"{"name":"request.queued","cat":"serving","ph":"i","s":"t","ts":7,"pid":1,"tid":0,"args":{"id":"cmpl-1"}}"#,
        r#"{"name":"té\u00e9","cat":"","ph":"C","ts":0,"pid":1,"tid":1,"args":{}}"#,
        r#"{"name":"a","cat":"b","ph":"B","ts":1,"pid":1,"tid":1}"#,
        r#"{"name":"a","cat":"b","ph":"E","ts":123456789012345,"pid":1,"tid":1,"args":7}"#,
    ];

    #[test]
    fn finds_the_same_as_the_general_scanner() {
        for text in LINES {
            let line = text.as_bytes();
            let event = parse(line).expect(text);
            assert_eq!(Ok(event), parse_any(line), "{text}");
        }
    }

    #[test]
    fn leaves_everything_else_to_the_general_scanner() {
        for text in [
            r#"{"name":"process_name","ph":"M","pid":1,"tid":0,"args":{"name":"x"}}"#,
            r#"{"name":"a","cat":"b","ph":"X","ts":1.5,"dur":1,"pid":1,"tid":1}"#,
            r#"{"name":"a","cat":"b","ph":"X","ts":01,"dur":1,"pid":1,"tid":1}"#,
            r#"{"name":"a","cat":"b","ph":"X","ts":1,"dur":-1,"pid":1,"tid":1}"#,
            r#"{"name":"a","cat":"b","ph":"X","ts":1,"dur":1,"pid":1,"tid":1234567890123456}"#,
            r#"{"name":"a","cat":"b","ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"args":{},"pid":2}"#,
            r#"{"name":"a","cat":"b","ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"args":{}}}"#,
            r#"{"name":"a","cat":"b","ph":"s","id":1,"ts":1,"pid":1,"tid":1}"#,
            r#"{"name": "a","cat":"b","ph":"B","ts":1,"pid":1,"tid":1}"#,
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn never_disagrees_on_mutated_lines() {
        let alphabet = b"{}[]\",:\\eE+-.0129tfnXi \t\x01\x7f\xff\xc3";
        let mut state = 88_172_645_463_325_252_u64;
        let mut next = |limit: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 16).expect("64-bit") % limit
        };
        let mut accepted = 0;
        for round in 0..200_000 {
            let mut line = LINES[round % LINES.len()].as_bytes().to_vec();
            for _ in 0..=next(2) {
                let at = next(line.len());
                match next(4) {
                    0 => line.truncate(at.max(1)),
                    1 if line.len() > 1 => drop(line.remove(at)),
                    2 => line[at] = alphabet[next(alphabet.len())],
                    _ => line.insert(at, alphabet[next(alphabet.len())]),
                }
            }
            let Some(event) = parse(&line) else { continue };
            let text = String::from_utf8_lossy(&line);
            assert_eq!(Ok(event), parse_any(&line), "{text}");
            let again = parse_again(&line).expect("accepted before");
            let [first, second] = [event, again]
                .map(|event| (event.fields.ts, event.fields.tid, event.ts_ns, event.dur_ns));
            assert_eq!(first, second, "{text}");
            accepted += 1;
        }
        assert!(
            accepted > 10_000,
            "the mutations must leave some lines as expected, got {accepted}"
        );
    }
}
