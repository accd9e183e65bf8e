//! Parses lines with the key order of pypto-serving's recorder: `name cat ph [s] ts [dur] pid tid args`, whole microseconds, no white space.
//!
//! In: a line that is known to be UTF-8. Out: the event that the general scanner would find, in less than half of the time. At the first unexpected byte, the
//! result is `None`, and the general scanner has to decide what the line is.

mod prefixes;

pub(crate) use prefixes::{Prefixes, parse_first, parse_first_front};

use prefixes::{Ids, Prefix};
use sa_format::Phase;

use crate::event::Event;
use crate::json::{Fields, Scanner, Span};
use crate::member::{self, is_infinite};
use crate::mend::has_invisible_characters;
use trace_base::swar::digits;

/// Parses a whole line and checks every byte of it.
#[inline]
pub(crate) fn parse(line: &[u8]) -> Option<Event<'_>> {
    let (mut event, at) = parse_front(line)?;
    let mut scanner = Scanner::new(line, at);
    event.fields.args = parse_end(&mut scanner)?;
    let is_whole = scanner.at == line.len() && !scanner.odd_escapes;
    (is_whole && has_good_args(&event)).then_some(event)
}

/// Returns true if viewers accept the args of the event.
#[inline(always)]
fn has_good_args(event: &Event<'_>) -> bool {
    let args = event.fields.args.slice(event.line);
    match event.phase {
        Phase::Counter => member::is_drawn(args),
        _ => !is_infinite(args),
    }
}

const ARGS: &[u8] = br#","args":"#;

/// Parses the beginning of a line up to its `tid`. Returns the event and the offset after the `tid`.
#[inline]
pub(crate) fn parse_front(line: &[u8]) -> Option<(Event<'_>, usize)> {
    parse_after_prefix(line, &mut parse_prefix(line)?)
}

fn parse_prefix(line: &[u8]) -> Option<Prefix<'_>> {
    let mut scanner = Scanner::new(line, 0);
    scanner.literal(br#"{"name":"#)?;
    let name = scanner.text()?;
    if has_invisible_characters(line, name) {
        return None;
    }
    scanner.literal(br#","cat":"#)?;
    let cat = scanner.text()?;
    scanner.literal(br#","ph":"#)?;
    let (byte, ph) = scanner.letter()?;
    let phase = Phase::from_byte(byte)?;
    match phase {
        Phase::Complete | Phase::Counter | Phase::Begin | Phase::End => {}
        Phase::Instant => {
            scanner.literal(br#","s":"#)?;
            scanner.letter()?;
        }
        _ => return None,
    }
    scanner.literal(br#","ts":"#)?;
    if scanner.odd_escapes {
        return None;
    }
    Some(Prefix {
        text: &line[..scanner.at],
        phase,
        ph,
        name,
        cat,
        ids: Ids::default(),
        end: b"",
    })
}

/// Parses the times and ids of a line that begins with `prefix`. Returns the event and the offset after the ids.
#[inline(always)]
fn parse_after_prefix<'a>(line: &'a [u8], prefix: &mut Prefix<'a>) -> Option<(Event<'a>, usize)> {
    let mut scanner = Scanner::new(line, prefix.text.len());
    let (ts_us, ts) = scanner.whole()?;
    let (mut dur_us, mut dur) = (0, Span::default());
    if prefix.phase == Phase::Complete {
        scanner.literal(br#","dur":"#)?;
        (dur_us, dur) = scanner.whole()?;
    }
    let at = scanner.at;
    let rest = &line[at..];
    if prefix.ids.text.is_empty() || !rest.starts_with(prefix.ids.text) {
        prefix.ids = parse_ids(rest)?;
    }
    let Ids { pid, tid, .. } = prefix.ids;
    let in_line = |span: Span| Span::new(at + span.start, at + span.end);
    let fields = Fields {
        ph: prefix.ph,
        ts,
        dur,
        pid: in_line(pid.1),
        tid: in_line(tid.1),
        name: prefix.name,
        cat: prefix.cat,
        ..Fields::default()
    };
    let event = Event {
        ts_ns: ts_us * 1000,
        dur_ns: dur_us * 1000,
        ..Event::untimed(line, prefix.phase, (pid.0, tid.0), fields)
    };
    Some((event, fields.tid.end))
}

#[inline(always)]
fn parse_ids(text: &[u8]) -> Option<Ids<'_>> {
    let mut scanner = Scanner::new(text, 0);
    scanner.literal(br#","pid":"#)?;
    let pid = scanner.whole()?;
    scanner.literal(br#","tid":"#)?;
    let tid = scanner.whole()?;
    let ends = matches!(scanner.peek(), b',' | b'}');
    let text = if ends { &text[..=scanner.at] } else { b"" };
    Some(Ids { text, pid, tid })
}

/// Parses the rest of a line after its `tid`. Returns the span of the args.
#[inline(always)]
fn parse_end(scanner: &mut Scanner<'_>) -> Option<Span> {
    let mut args = Span::default();
    if scanner.literal(ARGS).is_some() {
        let start = scanner.at;
        scanner.value(1)?;
        args = scanner.since(start);
    }
    scanner.literal(b"}")?;
    Some(args)
}

impl Scanner<'_> {
    #[inline(always)]
    fn text(&mut self) -> Option<Span> {
        let start = self.at;
        self.string()?;
        Some(self.since(start))
    }

    /// Scans a string of one letter.
    #[inline(always)]
    pub(crate) fn letter(&mut self) -> Option<(u8, Span)> {
        let start = self.at;
        let [b'"', letter, b'"'] = *self.bytes.get(start..)?.first_chunk()? else {
            return None;
        };
        self.at += 3;
        letter
            .is_ascii_alphabetic()
            .then(|| (letter, self.since(start)))
    }

    /// Scans a whole number. Returns `None` for more than 15 digits or leading zeros, which are left to the general scanner.
    #[inline(always)]
    pub(crate) fn whole(&mut self) -> Option<(i64, Span)> {
        let start = self.at;
        let (number, len) = digits(self.bytes, start)?;
        self.at += len;
        let has_zeros = len > 1 && self.bytes[start] == b'0';
        (!has_zeros).then(|| (number, self.since(start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{parse_again, parse_any};
    use crate::sample::mutate;

    pub(crate) const LINES: [&str; 5] = [
        r#"{"name":"kernel","cat":"worker","ph":"X","ts":2431580341,"dur":1250,"pid":23149,"tid":139662951478848,"args":{"k":1,"f":-2.5e3,"s":["a\"b",null]}}"#,
        r#"{"name":"request.queued","cat":"serving","ph":"i","s":"t","ts":7,"pid":1,"tid":0,"args":{"id":"cmpl-1"}}"#,
        r#"{"name":"té\u00e9","cat":"","ph":"C","ts":0,"pid":1,"tid":1,"args":{"v":7}}"#,
        r#"{"name":"a","cat":"b","ph":"B","ts":1,"pid":1,"tid":1}"#,
        r#"{"name":"a","cat":"b","ph":"E","ts":123456789012345,"pid":1,"tid":1,"args":7}"#,
    ];

    #[test]
    fn never_disagrees_on_mutated_lines() {
        let mut accepted = 0;
        mutate(&LINES.map(str::as_bytes), 200_000, |line| {
            let Some(event) = parse(line) else { return };
            let text = String::from_utf8_lossy(line);
            assert_eq!(Ok(event), parse_any(line), "{text}");
            let again = parse_again(line).expect("accepted before");
            let [first, second] = [event, again]
                .map(|event| (event.fields.ts, event.fields.tid, event.ts_ns, event.dur_ns));
            assert_eq!(first, second, "{text}");
            accepted += 1;
        });
        assert!(
            accepted > 10_000,
            "the mutations must leave some lines valid, got {accepted}"
        );
    }
}
