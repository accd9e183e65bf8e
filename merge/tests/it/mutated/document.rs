//! Whole documents of each form that a merge reads, with events and bytes that nobody should write.

use super::event::{PHASES, event, mutate, object, set};
use crate::random::{Rng, harm};
use format_oracle::writer::Process;

/// Texts that have a meaning for a parser.
const WORDS: &str = r#"{ } [ ] , : " \ 1e999 null "ph":"X" "ts": "dur":- 7 . e +"#;

/// Beginning of a document of Kineto, and end of one of VizTracer.
const KINETO: &str = r#"{"schemaVersion":1,"baseTimeNanoseconds":1790857026000000000,"deviceProperties":[{"id":0}],"traceEvents":["#;
const VIZTRACER: &str = r#"],"viztracer_metadata":{"version":"1.1.1","overflow":false,"baseTimeNanoseconds":1790857026000000000}}"#;

/// A document, and a file name that fits its form.
pub(crate) struct Document {
    pub(crate) name: &'static str,
    pub(crate) text: Vec<u8>,
}

/// Returns a document with some events.
pub(crate) fn document(rng: &mut Rng) -> Document {
    let form = rng.below(6);
    let space = ["", " ", "\n  "][if form < 2 { 0 } else { rng.below(3) }];
    let count = 1 + rng.below(24);
    let phases: Vec<char> = PHASES.chars().collect();
    let mut events = Vec::new();
    for number in 0..count {
        let phase = phases[rng.below(phases.len())];
        let mut members = event(phase, number);
        if form == 3 {
            // VizTracer and torch_npu write times as texts or with decimals.
            let ts = format!("\"{}.250\"", 5_000_000 + 90 * number);
            set(&mut members, "ts", &ts);
        }
        if rng.one_in(2) {
            mutate(&mut members, rng);
        }
        events.push(object(&members, space));
    }
    let (name, text) = match form {
        0 => ("trace.900.jsonl", events.join("\n") + "\n"),
        1 => ("trace.900.jsonl", own(&events)),
        2 => (
            "kineto.json",
            format!("{KINETO}\n{}\n],\"traceName\":\"x\"}}", events.join(",\n")),
        ),
        3 => ("trace_view.json", format!("[{}]", events.join(","))),
        4 => (
            "viztracer.json",
            format!("{{\"traceEvents\":[{}{VIZTRACER}", events.join(",")),
        ),
        _ => ("lines.json", events.join("\n") + "\n"),
    };
    let mut text = text.into_bytes();
    if rng.one_in(3) {
        harm(rng, &mut text, 0);
    }
    if rng.one_in(3) {
        let at = rng.below(text.len() + 1);
        text.splice(at..at, rng.word(WORDS).bytes());
    }
    Document { name, text }
}

/// Returns a fragment of ours that also contains these lines.
fn own(events: &[String]) -> String {
    let process = Process {
        main: true,
        ..Process::new(900)
    };
    let on = process.thread(901);
    let mut fragment = process.fragment();
    fragment.line(&process.anchor(5_000_000_000));
    fragment.line(&on.span(5_000_000_000, 9_000, "recorded", ""));
    fragment.line(&events.join("\n"));
    fragment.line(&process.end(6_000_000_000));
    String::from_utf8(fragment.bytes).unwrap()
}
