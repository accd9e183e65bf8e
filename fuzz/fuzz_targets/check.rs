//! Any text as a trace: never a panic, and what is JSON and a trace is never called unreadable.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use std::path::Path;
use trace_merge::check::{Rule, check_stream};

fuzz_target!(|data: &[u8]| {
    // What is compressed may be too long, or none.
    let is_packed = data.starts_with(&[0x1f, 0x8b]);
    let Ok(report) = check_stream(Path::new("input"), data) else {
        assert!(is_packed, "text was not read");
        return;
    };
    assert!(report.spans_dropped <= report.spans && report.spans <= report.events);
    let json = serde_json::from_slice(data);
    if json.is_ok_and(|json| is_trace(&json)) && !repeats_events(data) {
        assert_eq!(report.count(Rule::NotJson), 0, "JSON was called unreadable");
        assert_eq!(report.count(Rule::LooseJson), 0, "JSON was called loose");
    }
});

/// An array of objects, or an object whose events, if it has any, are such an array.
fn is_trace(json: &Value) -> bool {
    let events = match json {
        Value::Object(members) => match members.get("traceEvents") {
            Some(Value::Array(events)) => events,
            _ => return true,
        },
        Value::Array(events) => events,
        _ => return false,
    };
    events.iter().all(Value::is_object)
}

/// serde_json keeps only the last ones.
fn repeats_events(text: &[u8]) -> bool {
    let key = b"\"traceEvents\"";
    text.windows(key.len())
        .filter(|window| window == key)
        .count()
        > 1
}
