//! Converts an event of another profiler into a line that the merge passes read.
//!
//! The text is copied, with four exceptions: newlines between members are removed, because a line cannot contain them; a missing pid is added;
//! members that viewers reject are repaired; and ids get the document as their scope.

use super::early_arrows::ArrowEnd;
use crate::base::number::unquoted;
use crate::device::category::TrackCategories;
use crate::event::damage::Kind;
use crate::event::json::{Fields, scan_object_at_front, string_end};
use crate::event::line::{ADDED, Event, event, is_left_out};
use crate::event::mend::{Repair, has_invisible_name, json_text, mended_event, name_edits};
use memchr::{memchr2, memmem};
use sa_format::{MAX_LINE_BYTES, Phase};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ops::Range;

/// Ranges of the text, and their replacements.
type Edits = Vec<(Range<usize>, Vec<u8>)>;

/// Summary of a line that was written.
pub(super) struct WrittenEvent {
    /// Begin and end of the event, unless it is metadata.
    pub(super) time: Option<(i64, i64)>,
    /// Ids that are texts, with the numbers that replace them.
    pub(super) texts: [Option<(i64, String)>; 2],
    /// True if the name contained invisible characters.
    pub(super) had_hidden: bool,
    /// Repairs that were made.
    pub(super) repairs: BTreeSet<Repair>,
    /// Pid and tid of the event, and the summary of its category.
    pub(super) row: ((i64, i64), TrackCategories),
    /// The start or end of a launch arrow, if the event is one.
    pub(super) arrow_end: Option<ArrowEnd>,
}

/// Converts an event of another profiler and appends its line to `out`. `text` is the JSON object, and `fields` locates its members. Returns
/// `None` and appends nothing if the event was added by an earlier merge or is a record that only fragments may contain. Returns the kind of
/// damage if the object is not a valid event.
pub(super) fn write_line(
    text: &[u8],
    fields: Fields,
    out: &mut Vec<u8>,
) -> Result<Option<WrittenEvent>, Kind> {
    if text.len() > MAX_LINE_BYTES {
        return Err(Kind::LineTooLong);
    }
    if simdutf8::basic::from_utf8(text).is_err() {
        return Err(Kind::BadUtf8);
    }
    if fields.ph.is_some() && !fields.pid.is_some() {
        return write_with_pid(text, out);
    }
    let event = event(text, fields)?;
    let category = unquoted(fields.cat.slice(text));
    if is_left_out(&event) || category == ADDED.as_bytes() {
        return Ok(None);
    }
    if event.fields.odd {
        return write_mended(&event, out);
    }
    let edits = edits(&event);
    if !edits.is_empty() {
        write_compact(&edited(text, &edits), out);
    } else if memchr2(b'\n', b'\r', text).is_some() {
        write_compact(text, out);
    } else {
        out.extend_from_slice(text);
    }
    out.push(b'\n');
    Ok(Some(WrittenEvent {
        had_hidden: has_invisible_name(&event),
        time: (!event.is_metadata()).then_some((event.ts_ns, event.ts_ns + event.dur_ns)),
        texts: [(event.pid, fields.pid), (event.tid, fields.tid)]
            .map(|(id, span)| text_id(id, span.slice(text))),
        repairs: BTreeSet::new(),
        row: ((event.pid, event.tid), categories(&event)),
        arrow_end: ArrowEnd::from_event(&event),
    }))
}

/// Returns what the category and args of a span say about its track, as device or host; empty for other events.
fn categories(event: &Event<'_>) -> TrackCategories {
    let category = unquoted(event.fields.cat.slice(event.line));
    match (event.phase, std::str::from_utf8(category)) {
        (Phase::Complete | Phase::Begin | Phase::AsyncBegin, Ok(category)) => {
            TrackCategories::of_span(category, event.fields.args.slice(event.line))
        }
        _ => TrackCategories::default(),
    }
}

/// Appends the line of an event to `out`, without the members that viewers reject. The result lists these repairs.
fn write_mended(event: &Event<'_>, out: &mut Vec<u8>) -> Result<Option<WrittenEvent>, Kind> {
    let (text, repairs) = mended_event(event.line, event.phase).ok_or(Kind::BadEvent)?;
    let written = write_text(&text, out)?;
    Ok(written.map(|written| WrittenEvent { repairs, ..written }))
}

/// Appends the line of an event that has no pid to `out`. The event gets pid 0, which viewers assume.
fn write_with_pid(text: &[u8], out: &mut Vec<u8>) -> Result<Option<WrittenEvent>, Kind> {
    write_text(&[br#"{"pid":0,"#, &text[1..]].concat(), out)
}

/// Locates the members of an event whose text was changed here, and appends the event's line to `out`.
fn write_text(text: &[u8], out: &mut Vec<u8>) -> Result<Option<WrittenEvent>, Kind> {
    let (fields, _) = scan_object_at_front(text).map_err(|_| Kind::BadJson)?;
    write_line(text, fields, out)
}

/// Returns a pid or tid with its original text, if the profiler wrote a text in place of a number. Such ids have negative replacement numbers.
fn text_id(id: i64, text: &[u8]) -> Option<(i64, String)> {
    let name = || serde_json::from_slice(text).ok();
    (id < 0 && text.starts_with(b"\""))
        .then(name)
        .flatten()
        .map(|name| (id, name))
}

/// Returns the changes that an event's JSON text needs: an id with the document as its scope, and a name without invisible characters. Usually
/// there are none.
fn edits(event: &Event<'_>) -> Edits {
    let mut edits = Edits::new();
    if event.phase.has_id() {
        edits.extend(scoped_id(event));
    }
    if has_invisible_name(event) {
        edits.extend(name_edits(event.line, &event.fields, true));
    }
    edits.sort_by_key(|(range, _)| range.start);
    edits
}

/// Returns a new id member for a flow or async event, and the range of the event's text that it replaces. The new id is unique in the document: a
/// process-local id gets the pid as a prefix, and an id with a `scope` gets that as a prefix. A global id becomes local to the document. Returns
/// `None` if the id can stay.
fn scoped_id(event: &Event<'_>) -> Option<(Range<usize>, Vec<u8>)> {
    let fields = &event.fields;
    let object = |text: &[u8]| serde_json::from_slice::<Value>(text).ok();
    let member = |span: crate::event::json::Span| {
        let text = span.slice(event.line);
        object(&[b"{", text, b"}"].concat())
    };
    if fields.id2.is_some() {
        let id2 = member(fields.id2)?;
        let id2 = &id2["id2"];
        let text = match (id_text(&id2["global"]), id_text(&id2["local"])) {
            (Some(global), _) => global,
            (None, Some(local)) => format!("{}:{local}", event.pid),
            (None, None) => return None,
        };
        let local = format!(r#""id2":{}"#, json_text(&json!({ "local": text })));
        return Some((fields.id2.start..fields.id2.end, local.into_bytes()));
    }
    if !fields.id.is_some() || memmem::find(event.line, br#""scope""#).is_none() {
        return None;
    }
    let scope = object(event.line)?.get("scope")?.as_str()?.to_owned();
    let id = member(fields.id)?;
    let text = match &id["id"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let scoped = format!(r#""id":{}"#, json_text(&json!(format!("{scope}/{text}"))));
    Some((fields.id.start..fields.id.end, scoped.into_bytes()))
}

/// Returns the id of a flow or async event as text. Some profilers write it as a number, which becomes hexadecimal.
fn id_text(id: &Value) -> Option<String> {
    let number = || id.as_i64().map(|number| format!("{number:#x}"));
    id.as_str().map(str::to_owned).or_else(number)
}

/// Returns a copy of an event's JSON text with the edits (ranges and their replacements) applied.
fn edited(text: &[u8], edits: &Edits) -> Vec<u8> {
    let (mut out, mut at) = (Vec::with_capacity(text.len() + 64), 0);
    for (range, new) in edits {
        out.extend_from_slice(&text[at..range.start]);
        out.extend_from_slice(new);
        at = range.end;
    }
    out.extend_from_slice(&text[at..]);
    out
}

/// Appends a JSON object to `out` without the white space outside of its strings, so that it fits on one line.
fn write_compact(text: &[u8], out: &mut Vec<u8>) {
    let (mut at, mut copied) = (0, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {
                out.extend_from_slice(&text[copied..at]);
                at += 1;
                copied = at;
            }
            b'"' => at = string_end(text, at),
            _ => at += 1,
        }
    }
    out.extend_from_slice(&text[copied..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<String, Kind> {
        let (fields, _) = scan_object_at_front(text.as_bytes()).map_err(|_| Kind::BadJson)?;
        let mut out = Vec::new();
        write_line(text.as_bytes(), fields, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn an_event_becomes_one_line() {
        // Pairs of lines: an event, and the expected line.
        let table = include_str!("../../tests/events.txt");
        let lines: Vec<&str> = table.lines().collect();
        let several = "{\n  \"ph\": \"i\",\n\"name\":\"a \\\" b\",\r\n\"pid\":1,\"ts\" : 2\n}";
        let one = r#"{"ph":"i","name":"a \" b","pid":1,"ts":2}"#;
        for pair in lines.chunks(2).chain([&[several, one][..]]) {
            assert_eq!(line(pair[0]), Ok(format!("{}\n", pair[1])), "{}", pair[0]);
        }
        let own = r#"{"ph":"M","name":"sa_anchor","pid":1,"args":{"monotonic_ns":1}}"#;
        let added = r#"{"ph":"X","name":"queue","pid":1,"ts":1,"dur":1,"cat":"sa_findings"}"#;
        for left_out in [own, added] {
            assert_eq!(line(left_out).as_deref(), Ok(""));
        }
    }
}
