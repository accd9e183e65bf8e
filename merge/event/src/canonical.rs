//! Parses lines with the key order of FORMAT.md. Only their beginning is read, because the checksum of their block covers the rest.

use crate::json::{Fields, Scanner, Span};
use crate::line::{Event, parse};
use crate::member;
use sa_format::Phase;
use trace_base::number::three_decimals;

/// Text before a name.
const NAME: &[u8] = br#","name":""#;

/// Parses the beginning of a line in canonical order. Returns `None` if it has another form, which may still be valid.
#[inline]
pub fn parse_canonical(line: &[u8]) -> Option<Event<'_>> {
    let mut front = Scanner::new(line, 0);
    front.literal(br#"{"ph":"#)?;
    let (byte, ph) = front.letter()?;
    let phase = Phase::from_byte(byte)?;
    front.literal(br#","pid":"#)?;
    let (pid, pid_span) = front.whole()?;
    front.literal(br#","tid":"#)?;
    let (tid, tid_span) = front.whole()?;
    let fields = Fields {
        ph,
        pid: pid_span,
        tid: tid_span,
        ..Fields::default()
    };
    let mut event = Event::untimed(line, phase, (pid, tid), fields);
    if phase == Phase::Metadata {
        front.name(&mut event.fields)?;
        if !event.name().starts_with(b"sa_") {
            return program_metadata(line);
        }
    } else {
        front.literal(br#","ts":"#)?;
        (event.ts_ns, event.fields.ts) = front.micros()?;
        front.rest(&mut event)?;
    }
    (line.last() == Some(&b'}')).then_some(event)
}

/// Parses metadata with a name of the program's choice. Such a line is scanned to the end, and is canonical only if it does not have to be mended.
#[cold]
fn program_metadata(line: &[u8]) -> Option<Event<'_>> {
    let event = parse(line).ok()?;
    (!event.fields.is_mended() && !event.fields.repeated).then_some(event)
}

/// Returns true if the name follows, possibly after the thread's CPU time. No other members may be between the duration and the name.
#[inline(always)]
pub(crate) fn is_named(rest: &[u8]) -> bool {
    rest.starts_with(NAME) || is_named_after_cpu_time(rest)
}

#[inline(never)]
fn is_named_after_cpu_time(mut rest: &[u8]) -> bool {
    for key in [&br#","tts":"#[..], br#","tdur":"#] {
        if let Some(value) = rest.strip_prefix(key)
            && let Some((_, len)) = three_decimals(value)
        {
            rest = &value[len..];
        }
    }
    rest.starts_with(NAME)
}

/// Returns the id of a flow, which follows the time, and the rest of the line after it. Viewers refuse an arrow without an id.
#[inline(always)]
pub(crate) fn flow_id(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let after = rest.strip_prefix(br#","id2":"#)?;
    let end = memchr::memchr(b'}', after)? + 1;
    let is_id = after.starts_with(br#"{"local":"#) || after.starts_with(br#"{"global":"#);
    is_id.then(|| after.split_at(end))
}

impl Scanner<'_> {
    #[inline(always)]
    fn micros(&mut self) -> Option<(i64, Span)> {
        let start = self.at;
        let (ns, len) = three_decimals(self.bytes.get(start..)?)?;
        self.at += len;
        Some((ns, self.since(start)))
    }

    /// Parses the members after `ts` that events of this phase need.
    #[inline(always)]
    fn rest(&mut self, event: &mut Event<'_>) -> Option<()> {
        match event.phase {
            Phase::Complete => {
                self.literal(br#","dur":"#)?;
                (event.dur_ns, event.fields.dur) = self.micros()?;
                is_named(&self.bytes[self.at..]).then_some(())?;
            }
            Phase::Begin => {}
            Phase::Counter if member::ends_drawn(self.bytes) => {}
            Phase::Instant => {
                self.literal(br#","s":"#)?;
                self.letter()?;
                self.name(&mut event.fields)?;
            }
            Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd => {
                let (_, after) = flow_id(&self.bytes[self.at..])?;
                event.fields.id2 = Span::new(self.at + 1, self.bytes.len() - after.len());
            }
            _ => return None,
        }
        Some(())
    }

    fn name(&mut self, fields: &mut Fields) -> Option<()> {
        self.literal(br#","name":"#)?;
        let start = self.at;
        self.literal(b"\"")?;
        let inside = &self.bytes[self.at..];
        let end = memchr::memchr2(b'"', b'\\', inside)?;
        // The merge needs only the names of the recorder's own records, which have no escapes.
        if inside[end] == b'"' {
            fields.name = Span::new(start, self.at + end + 1);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefix_cache::Timed;

    #[test]
    fn issue_19_invalid_cpu_times_are_left_to_the_scanner() {
        for (between, is_canonical) in [
            ("", true),
            (r#","tts":1.000"#, true),
            (r#","tts":1.000,"tdur":3.000"#, true),
            (r#","tts":null"#, false),
            (r#","tts":1.000,"tdur":"x""#, false),
            (r#","tts":1.000,"tts":2.000"#, false),
            (r#","a":1e999"#, false),
        ] {
            let front = r#"{"ph":"X","pid":1,"tid":2,"ts":1.000,"dur":2.000"#;
            let line = format!(r#"{front}{between},"name":"n","cat":"c"}}"#);
            let event = parse_canonical(line.as_bytes());
            assert_eq!(event.is_some(), is_canonical, "{line}");
            // The prefix cache checks a line in the same way.
            let (ts_ns, rest) = (1_000, &line.as_bytes()[front.len() - 12..]);
            let timed = Timed { ts_ns, rest };
            assert_eq!(timed.dur_ns().is_some(), is_canonical, "{line}");
        }
    }
}
