//! Joins the begin and the end (`B`, `E`) of a span of length 0 to one complete span (`X`).
//!
//! Viewers process ends before begins of the same time. So they would close another span with this end, and never close this span.

use crate::event::Event;
use crate::json::{Fields, Members, build_object, put_member, scan_object};
use crate::mend::mended_event;
use sa_format::Phase;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;

/// Calls `found` with a complete span of length 0 that has the args of the begin and the end.
#[cold]
pub fn with_complete_span<R>(
    begin: &Event<'_>,
    end_args: &[u8],
    found: impl FnOnce(&Event<'_>) -> R,
) -> R {
    let line = mended_line(begin.line, end_args)
        .or_else(|| mended_line(begin.line, b""))
        .unwrap_or_else(|| begin.line.to_vec());
    let fields = Fields {
        hidden: begin.fields.hidden,
        ..scan_object(&line).unwrap_or_default()
    };
    found(&Event {
        line: &line,
        phase: Phase::Complete,
        dur_ns: 0,
        fields,
        ..*begin
    })
}

/// Returns the line of the complete span, mended for viewers. Returns `None` if it is not JSON, because the end was overwritten in its source.
fn mended_line(begin: &[u8], end_args: &[u8]) -> Option<Vec<u8>> {
    let line = complete_line(begin, end_args);
    let line = mended_event(&line, Phase::Complete).map_or(line, |(mended, _)| mended);
    let is_json = serde_json::from_slice::<&RawValue>(&line).is_ok();
    is_json.then_some(line)
}

fn complete_line(text: &[u8], end_args: &[u8]) -> Vec<u8> {
    let mut out = vec![b'{'];
    let mut has_args = false;
    for (key, value) in Members::new(text) {
        match key {
            b"ph" => {
                put_member(&mut out, key, br#""X""#);
                put_member(&mut out, b"dur", b"0");
            }
            b"dur" => {}
            b"args" => {
                has_args = true;
                put_member(&mut out, key, &joined(value, end_args));
            }
            _ => put_member(&mut out, key, value),
        }
    }
    if !has_args && has_members(end_args) {
        put_member(&mut out, b"args", &joined(b"", end_args));
    }
    out.push(b'}');
    out
}

/// Joins the args of the begin and the end. If both have a key, the end's member is used.
fn joined<'a>(begin: &'a [u8], end: &[u8]) -> Cow<'a, [u8]> {
    let end_keys: HashSet<&[u8]> = Members::new(end).map(|(key, _)| key).collect();
    if end_keys.is_empty() {
        return begin.into();
    }
    let from_begin = Members::new(begin).filter(|(key, _)| !end_keys.contains(key));
    let all = from_begin.chain(Members::new(end));
    build_object(all.map(|(key, value)| (key, value.into()))).into()
}

/// Returns true if args are an object that is not empty.
pub fn has_members(args: &[u8]) -> bool {
    Members::new(args).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::parse;

    #[test]
    fn an_end_that_was_overwritten_leaves_valid_json() {
        let begin = parse(br#"{"ph":"B","name":"WAIT","ts":12,"pid":1,"args":{"k":1}}"#).unwrap();
        let overwritten = [
            &b"{\"a\":|{\"a\":}|{\"a\":tru}|{a:1}|{\"a\":1,}|{\"a\":[1,}|{\"a\":1}}|{\"a\\\":1}"[..],
            b"{\"a\":\"\x01\"}|{\"a\":\"\xff\"}|\0\0\0",
        ];
        for end_args in overwritten.join(&b'|').split(|byte| *byte == b'|') {
            with_complete_span(&begin, end_args, |event| {
                let found: serde_json::Value = serde_json::from_slice(event.line).unwrap();
                assert_eq!(found["ph"], "X", "{found}");
            });
        }
    }

    #[test]
    fn a_begin_becomes_a_complete_span_with_the_args_of_its_end() {
        // The rest of a begin, the args of its end, and the rest of the complete span.
        let table = include_str!("../tests/whole.txt");
        for case in table.lines() {
            let parts: Vec<&str> = case.split('|').map(str::trim).collect();
            let begin = format!(r#"{{"ph":"B","ts":1,"pid":1{}"#, parts[0]);
            let expected = format!(r#"{{"ph":"X","dur":0,"ts":1,"pid":1{}"#, parts[2]);
            let begin = parse(begin.as_bytes()).expect(case);
            with_complete_span(&begin, parts[1].as_bytes(), |span| {
                assert_eq!(String::from_utf8_lossy(span.line), expected);
                let parsed = parse(expected.as_bytes()).expect(&expected);
                let times = (span.phase, span.ts_ns, span.dur_ns);
                assert_eq!(times, (Phase::Complete, begin.ts_ns, 0));
                assert_eq!(span.fields, parsed.fields, "{expected}");
            });
        }
    }
}
