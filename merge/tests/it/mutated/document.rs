//! Whole documents of each form that a merge reads, with events and bytes that nobody should write.

use super::choices::Choices;
use super::event::{PHASES, event, mutate, object};
use format_oracle::writer::Process;

/// A document, and the name of a file of its form.
pub(crate) struct Document {
    pub(crate) name: &'static str,
    pub(crate) text: Vec<u8>,
}

/// A document of some events.
pub(crate) fn document(choices: &mut Choices<'_>) -> Document {
    let form = choices.below(6);
    let space = ["", " ", "\n  "][if form < 2 { 0 } else { choices.below(3) }];
    let count = 1 + choices.below(24);
    let phases: Vec<char> = PHASES.chars().collect();
    let mut events = Vec::new();
    for number in 0..count {
        let phase = *choices.of_these(&phases);
        let mut members = event(phase, number);
        if form == 3 {
            // VizTracer and torch_npu write times as texts or with decimals.
            super::event::set(
                &mut members,
                "ts",
                &format!("\"{}.250\"", 5_000_000 + 90 * number),
            );
        }
        if choices.one_in(2) {
            mutate(&mut members, choices);
        }
        events.push(object(&members, space));
    }
    let (name, text) = match form {
        0 => ("trace.900.jsonl", events.join("\n") + "\n"),
        1 => ("trace.900.jsonl", own(&events)),
        2 => (
            "kineto.json",
            format!(
                "{{\"schemaVersion\":1,\"baseTimeNanoseconds\":1790857026000000000,\"deviceProperties\":[{{\"id\":0}}],\n\"traceEvents\":[\n{}\n],\"traceName\":\"x\"}}",
                events.join(",\n")
            ),
        ),
        3 => ("trace_view.json", format!("[{}]", events.join(","))),
        4 => (
            "viztracer.json",
            format!(
                "{{\"traceEvents\":[{}],\"viztracer_metadata\":{{\"version\":\"1.1.1\",\"overflow\":false,\"baseTimeNanoseconds\":1790857026000000000}}}}",
                events.join(",")
            ),
        ),
        _ => ("lines.json", events.join("\n") + "\n"),
    };
    let mut text = text.into_bytes();
    if choices.one_in(3) {
        harm(&mut text, choices);
    }
    Document { name, text }
}

/// A fragment of ours, of which some lines are what others wrote.
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

/// Words that mean something to a reader.
const WORDS: [&[u8]; 16] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"1e999",
    b"null",
    b"\n",
    b"\0",
    b"\"ph\":\"X\"",
    b"\"ts\":",
    b"\"dur\":-",
    b"\xff",
];

/// Changes bytes, whatever they are.
fn harm(text: &mut Vec<u8>, choices: &mut Choices<'_>) {
    for _ in 0..1 + choices.below(3) {
        if text.is_empty() {
            return;
        }
        let at = choices.below(text.len());
        let some = (1 + choices.below(60)).min(text.len() - at);
        match choices.below(6) {
            0 => text[at] ^= 1 << choices.below(8),
            1 => drop(text.drain(at..at + some)),
            2 => {
                let again = text[at..at + some].to_vec();
                text.splice(at..at, again);
            }
            3 => text.truncate(at),
            4 => {
                let word = choices.of_these(&WORDS).to_vec();
                text.splice(at..at, word);
            }
            _ => {
                let digits = b"0123456789.eE-+";
                text[at] = *choices.of_these(digits);
            }
        }
    }
}
