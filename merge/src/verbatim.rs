//! Lines as they stand: what pypto-serving's own merge makes of fragments, whose readers know times, ids and counts of the lines themselves.

use crate::damage::Kind;
use crate::flow;
use crate::json::scan_object;
use crate::line::Event;
use crate::mend::{mend_line, mended};
use crate::scan::Part;
use sa_recorder::format::MAX_LINE_BYTES;
use std::borrow::Cow;

/// The object that stands where a line was found to be no event, such as one without a time.
pub(crate) fn object(bytes: &[u8], part: Part, at: usize, kind: Kind) -> Option<Cow<'_, [u8]>> {
    if !matches!(kind, Kind::BadEvent | Kind::TornTail) {
        return None;
    }
    let rest = bytes.get(at..part.end)?;
    let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    let line = rest[..end].trim_ascii();
    let is_text = line.len() <= MAX_LINE_BYTES && simdutf8::basic::from_utf8(line).is_ok();
    let fields = scan_object(line).filter(|_| is_text)?;
    Some(match fields.odd_numbers {
        true => mended(line),
        false => Cow::Borrowed(line),
    })
}

/// Appends the line of an event. The flow ids of a recorder of ours, which tell processes apart, are made ones that viewers read: `ordinal` is that of
/// its process.
pub(crate) fn write_verbatim(event: &Event<'_>, ordinal: Option<u64>, out: &mut Vec<u8>) {
    let (line, start) = (event.line, out.len());
    let id2 = event.fields.id2;
    let flow_id = ordinal
        .filter(|_| flow::has_id(event.phase) && id2.is_some())
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
    if event.fields.is_mended() {
        mend_line(out, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::parse;

    fn written(line: &str, ordinal: Option<u64>) -> String {
        let mut out = Vec::new();
        write_verbatim(&parse(line.as_bytes()).unwrap(), ordinal, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_flow_ids_of_ours_change() {
        let flow =
            r#"{"ph":"s","pid":7,"tid":8,"ts":2.500,"id2":{"local":"0x1f"},"name":"r","cat":"f"}"#;
        let plain = r#"{"ph":"s","pid":7,"tid":8,"ts":2.500,"id":31,"name":"r","cat":"f"}"#;
        let span = r#"{ "ts":9e3,"ph":"X","dur":1.00049,"pid":"a","tid":139772473715072}"#;
        assert_eq!(
            written(flow, Some(0)),
            r#"{"ph":"s","pid":7,"tid":8,"ts":2.500,"id":"0x1000000001f","name":"r","cat":"f"}"#
        );
        assert_eq!(written(flow, None), flow, "those of others");
        assert_eq!(written(plain, Some(0)), plain);
        assert_eq!(written(span, Some(0)), span);
    }

    #[test]
    fn an_object_is_found_where_it_is_no_event() {
        let bytes = b" {\"name\":\"ok\"} \nxx\n{\"name\":";
        let part = Part {
            start: 0,
            end: bytes.len(),
            trusted: false,
        };
        let at = |at, kind| object(bytes, part, at, kind).map(Cow::into_owned);
        assert_eq!(at(1, Kind::BadEvent), Some(br#"{"name":"ok"}"#.to_vec()));
        assert_eq!(at(16, Kind::BadJson), None);
        assert_eq!(at(19, Kind::TornTail), None, "torn");
    }
}
