//! One line → an [`Event`], or the [`Kind`] of damage it is.
//!
//! Two ways lead to the same event: [`parse`] scans the whole line; [`parse_canonical`] reads only the keys that the format
//! fixes at the front, for lines whose block's checksum already vouched for the rest.

use crate::damage::Kind;
use crate::json::{Fields, Span, scan_front, scan_object};
use crate::number::{self, three_decimals};
use xxhash_rust::xxh3::xxh3_64;

/// An event as far as the merge looks at it.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The line without its newline.
    pub line: &'a [u8],
    /// The phase, one character.
    pub phase: u8,
    /// Process id as the line says; text ids are hashed to negative numbers.
    pub pid: i64,
    /// Thread id; the process id where the line has none.
    pub tid: i64,
    /// Time in ns as the line says, 0 for metadata.
    pub ts_ns: i64,
    /// Duration in ns, 0 for everything but complete events.
    pub dur_ns: i64,
    /// Where the members stand.
    pub fields: Fields,
    /// Whether the duration has to be written anew, because it is no whole number of ns or a string.
    pub rounds_dur: bool,
}

impl<'a> Event<'a> {
    /// Tells whether this is metadata, which has no time.
    pub fn is_metadata(&self) -> bool {
        self.phase == b'M'
    }

    /// The name between its quotes, as written.
    pub fn name(&self) -> &'a [u8] {
        number::unquoted(self.fields.name.of(self.line))
    }

    /// Tells whether it is an unfinished span (FORMAT.md §2).
    pub fn is_unfinished(&self) -> bool {
        self.phase == b'B' && memchr::memmem::find(self.line, br#""unfinished":true"#).is_some()
    }
}

/// Parses a line of unknown origin.
///
/// # Errors
/// The kind of damage: `bad_utf8`, `bad_json` or `bad_event`.
pub fn parse(line: &[u8]) -> Result<Event<'_>, Kind> {
    if simdutf8::basic::from_utf8(line).is_err() {
        return Err(Kind::BadUtf8);
    }
    parse_utf8(line)
}

/// Parses a line that is known to be UTF-8.
#[inline]
pub(crate) fn parse_utf8(line: &[u8]) -> Result<Event<'_>, Kind> {
    let fields = scan_object(line).ok_or(Kind::BadJson)?;
    event(line, fields).ok_or(Kind::BadEvent)
}

/// Parses the front of a line that [`parse`] has accepted and that repeats no key.
#[inline]
pub(crate) fn parse_again(line: &[u8]) -> Option<Event<'_>> {
    event(line, scan_front(line)?)
}

#[inline]
fn event(line: &[u8], fields: Fields) -> Option<Event<'_>> {
    let [b'"', phase, b'"'] = *fields.ph.of(line) else {
        return None;
    };
    if !phase.is_ascii_graphic() || phase == b'\\' {
        return None;
    }
    let pid = id_number(fields.pid.of(line))?;
    let tid = if fields.tid.is_some() {
        id_number(fields.tid.of(line))?
    } else {
        pid
    };
    let mut event = Event {
        line,
        phase,
        pid,
        tid,
        ts_ns: 0,
        dur_ns: 0,
        fields,
        rounds_dur: false,
    };
    if phase != b'M' {
        read_times(&mut event)?;
    }
    Some(event)
}

#[inline]
fn read_times(event: &mut Event<'_>) -> Option<()> {
    let ts_text = event.fields.ts.of(event.line);
    let ts = number::micros(ts_text)?;
    event.ts_ns = ts.ns();
    if event.phase == b'X' {
        let dur_text = event.fields.dur.of(event.line);
        let dur = number::micros(dur_text)?;
        event.dur_ns = ts.span_ns(dur);
        event.rounds_dur = !dur.is_whole_ns() || dur_text.starts_with(b"\"");
        if dur_text.starts_with(b"-") || event.dur_ns < 0 {
            return None;
        }
    }
    Some(())
}

/// Reads a process or thread id: an integer, or a text that is hashed.
#[inline]
fn id_number(text: &[u8]) -> Option<i64> {
    if (1..=18).contains(&text.len()) && text.iter().all(u8::is_ascii_digit) {
        return Some(number::digits(text));
    }
    odd_id_number(text)
}

/// Reads an id that is negative, huge or a text.
#[cold]
fn odd_id_number(text: &[u8]) -> Option<i64> {
    let inner = number::unquoted(text);
    let number = std::str::from_utf8(inner).ok()?.parse::<i128>();
    match number {
        Ok(number) => i64::try_from(number).ok(),
        Err(_) if text.starts_with(b"\"") && !inner.is_empty() => {
            Some((xxh3_64(inner) | 1 << 63).cast_signed())
        }
        Err(_) => None,
    }
}

/// Reads the front of a line in canonical order; `None` if it is in any other form, which says nothing about the line.
#[inline]
pub fn parse_canonical(line: &[u8]) -> Option<Event<'_>> {
    let mut front = Front { line, at: 0 };
    front.literal(br#"{"ph":""#)?;
    let phase = *line.get(front.at)?;
    front.at += 1;
    front.literal(br#"","pid":"#)?;
    let (pid, pid_span) = front.number()?;
    front.literal(br#","tid":"#)?;
    let (tid, tid_span) = front.number()?;
    let ph = Span { start: 6, end: 9 };
    let fields = Fields {
        ph,
        pid: pid_span,
        tid: tid_span,
        ..Fields::default()
    };
    let mut event = Event {
        line,
        phase,
        pid,
        tid,
        ts_ns: 0,
        dur_ns: 0,
        fields,
        rounds_dur: false,
    };
    if phase == b'M' {
        front.name(&mut event.fields)?;
    } else {
        front.literal(br#","ts":"#)?;
        (event.ts_ns, event.fields.ts) = front.micros()?;
        front.rest(&mut event)?;
    }
    (line.last() == Some(&b'}')).then_some(event)
}

/// Reads literals and values off the front of a canonical line.
struct Front<'a> {
    line: &'a [u8],
    at: usize,
}

impl Front<'_> {
    #[inline(always)]
    fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.line
            .get(self.at..)?
            .starts_with(text)
            .then(|| self.at += text.len())
    }

    #[inline(always)]
    fn number(&mut self) -> Option<(i64, Span)> {
        let start = self.at;
        let mut value = 0i64;
        while let Some(byte) = self.line.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            if self.at - start == 18 {
                return None;
            }
            value = value * 10 + i64::from(byte - b'0');
            self.at += 1;
        }
        (self.at > start).then_some((
            value,
            Span {
                start,
                end: self.at,
            },
        ))
    }

    #[inline(always)]
    fn micros(&mut self) -> Option<(i64, Span)> {
        let (ns, len) = three_decimals(self.line.get(self.at..)?)?;
        let start = self.at;
        self.at += len;
        Some((
            ns,
            Span {
                start,
                end: self.at,
            },
        ))
    }

    /// What follows `ts`, as far as the phase needs it.
    #[inline(always)]
    fn rest(&mut self, event: &mut Event<'_>) -> Option<()> {
        match event.phase {
            b'X' => {
                self.literal(br#","dur":"#)?;
                (event.dur_ns, event.fields.dur) = self.micros()?;
            }
            b'B' | b'C' => {}
            b'i' => {
                self.literal(br#","s":""#)?;
                self.at += 1;
                self.literal(b"\"")?;
                self.name(&mut event.fields)?;
            }
            b's' | b't' | b'f' => event.fields.id2 = self.flow_id()?,
            _ => return None,
        }
        Some(())
    }

    fn name(&mut self, fields: &mut Fields) -> Option<()> {
        self.literal(br#","name":"#)?;
        let start = self.at;
        self.literal(b"\"")?;
        let inside = &self.line[self.at..];
        let end = memchr::memchr2(b'"', b'\\', inside)?;
        if inside[end] == b'"' {
            fields.name = Span {
                start,
                end: self.at + end + 1,
            };
        } else {
            // An escaped name is none of ours, and nobody else asks for it.
            fields.name = Span::default();
        }
        Some(())
    }

    fn flow_id(&mut self) -> Option<Span> {
        let start = self.at + 1;
        self.literal(br#","id2":{""#)?;
        let end = self.at + memchr::memchr(b'}', &self.line[self.at..])? + 1;
        Some(Span { start, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 8] = [
        r#"{"ph":"X","pid":4711,"tid":4712,"ts":81234567.891,"dur":1250.004,"tts":5.000,"name":"W","cat":"worker","args":{"p":1}}"#,
        r#"{"ph":"B","pid":4711,"tid":4194304,"ts":0.000,"name":"a","cat":"","args":{"unfinished":true}}"#,
        r#"{"ph":"i","pid":4711,"tid":4712,"ts":81235901.007,"s":"t","name":"request.queued","cat":"serving"}"#,
        r#"{"ph":"C","pid":1,"tid":1,"ts":81235902.000,"name":"requests","args":{"running":7}}"#,
        r#"{"ph":"s","pid":1,"tid":2,"ts":3.500,"id2":{"global":"0x1f"},"name":"request","cat":"flow"}"#,
        r#"{"ph":"f","pid":1,"tid":2,"ts":3.500,"id2":{"local":"0x1f"},"bp":"e","name":"request","cat":"flow"}"#,
        r#"{"ph":"M","pid":4711,"tid":4712,"name":"thread_name","args":{"name":"worker-0"}}"#,
        r#"{"ph":"i","pid":1,"tid":1,"ts":5.000,"s":"p","name":"sa_loss","cat":"sa_profile","args":{"cause":"disk_full","events":3}}"#,
    ];

    #[test]
    fn numbers_too_long_for_the_front_are_left_to_the_scanner() {
        for digits in [18, 19, 20, 40] {
            let line = format!(r#"{{"ph":"f","pid":{}"#, "9".repeat(digits));
            assert!(
                parse_canonical(line.as_bytes()).is_none(),
                "{digits} digits"
            );
        }
    }

    #[test]
    fn both_ways_agree_on_canonical_lines() {
        for text in LINES {
            let line = text.as_bytes();
            let (fast, slow) = (parse_canonical(line).expect(text), parse(line).expect(text));
            assert_eq!(
                (fast.phase, fast.pid, fast.tid),
                (slow.phase, slow.pid, slow.tid),
                "{text}"
            );
            assert_eq!(
                (fast.ts_ns, fast.dur_ns),
                (slow.ts_ns, slow.dur_ns),
                "{text}"
            );
            assert_eq!(
                (fast.fields.ts, fast.fields.pid),
                (slow.fields.ts, slow.fields.pid),
                "{text}"
            );
            assert_eq!(
                (fast.fields.tid, fast.fields.id2),
                (slow.fields.tid, slow.fields.id2),
                "{text}"
            );
            if matches!(fast.phase, b'M' | b'i') {
                assert_eq!(fast.name(), slow.name(), "{text}");
            }
        }
    }

    #[test]
    fn canonical_takes_nothing_cut() {
        for text in LINES {
            for end in 0..text.len() - 1 {
                let line = &text.as_bytes()[..end];
                assert!(parse(line).is_err(), "{}", String::from_utf8_lossy(line));
            }
        }
    }

    #[test]
    fn says_what_is_wrong() {
        let table: [(&[u8], Kind); 12] = [
            (b"\xff{}", Kind::BadUtf8),
            (b"garbage", Kind::BadJson),
            (b"[]", Kind::BadJson),
            (br#"{"ph":"X","ts":NaN,"dur":1,"pid":1}"#, Kind::BadJson),
            (b"{}", Kind::BadEvent),
            (br#"{"ph":"XX","ts":1,"dur":1,"pid":1}"#, Kind::BadEvent),
            (br#"{"ph":"X","dur":1,"pid":1}"#, Kind::BadEvent),
            (br#"{"ph":"X","ts":1,"pid":1}"#, Kind::BadEvent),
            (br#"{"ph":"X","ts":1,"dur":-1,"pid":1}"#, Kind::BadEvent),
            (br#"{"ph":"i","ts":1}"#, Kind::BadEvent),
            (br#"{"ph":"i","ts":1,"pid":1.5}"#, Kind::BadEvent),
            (br#"{"ph":"i","ts":true,"pid":1}"#, Kind::BadEvent),
        ];
        for (line, kind) in table {
            assert_eq!(
                parse(line).map(|event| event.phase),
                Err(kind),
                "{}",
                String::from_utf8_lossy(line)
            );
        }
    }

    #[test]
    fn a_line_without_tid_belongs_to_the_main_thread() {
        let event = parse(br#"{"ph":"i","ts":"1.5","pid":9}"#).unwrap();
        assert_eq!((event.pid, event.tid, event.ts_ns), (9, 9, 1500));
    }
}
