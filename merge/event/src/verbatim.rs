//! Writes lines with their recorded times and ids, like pypto-serving's own merge, for programs that rely on these. A line is changed only if viewers could not
//! load the trace otherwise.

use crate::damage::Kind;
use crate::event::Event;
use crate::flow;
use crate::json::scan_object;
use crate::member::parse_phase;
use crate::mend::{mend_line, mended_event};
use crate::scan::Part;
use sa_format::{MAX_LINE_BYTES, Phase};
use std::borrow::Cow;

/// Returns the object at a damaged line that is not a usable event, such as one without a time. Returns `None` for other damage.
pub fn object(bytes: &[u8], part: Part, at: usize, kind: Kind) -> Option<Cow<'_, [u8]>> {
    if !matches!(kind, Kind::BadEvent | Kind::TornTail) && !kind.is_unshown() {
        return None;
    }
    let rest = bytes.get(at..part.end)?;
    let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    let line = rest[..end].trim_ascii();
    let is_text = line.len() <= MAX_LINE_BYTES && simdutf8::basic::from_utf8(line).is_ok();
    let fields = scan_object(line).filter(|_| is_text)?;
    let phase = parse_phase(fields.ph.slice(line)).and_then(Phase::modern);
    let mended = mended_event(line, phase).map(|(text, _)| Cow::Owned(text));
    Some(mended.unwrap_or(Cow::Borrowed(line)))
}

/// Appends the line of an event. The flow ids of our recorder have a scope, so they are replaced with unique ones that viewers can read. `ordinal` is that of
/// the process.
pub fn write_verbatim(event: &Event<'_>, ordinal: Option<u64>, out: &mut Vec<u8>) {
    let start = out.len();
    let is_odd = event.fields.odd;
    match is_odd
        .then(|| mended_event(event.line, event.phase))
        .flatten()
    {
        Some((text, _)) => write(&event.in_line(&text), ordinal, out),
        None => write(event, ordinal, out),
    }
    if event.fields.is_mended() {
        mend_line(out, start);
    }
}

fn write(event: &Event<'_>, ordinal: Option<u64>, out: &mut Vec<u8>) {
    let line = event.line;
    let id2 = event.fields.id2;
    let flow_id = ordinal
        .filter(|_| event.phase.has_id() && id2.is_some())
        .and_then(|ordinal| flow::trace_id(event, ordinal))
        .filter(|(_, member)| *member == id2);
    match flow_id {
        Some((id, member)) => {
            out.extend_from_slice(&line[..member.start]);
            flow::write_id("id", id, out);
            out.extend_from_slice(&line[member.end..]);
        }
        None => out.extend_from_slice(line),
    }
}
