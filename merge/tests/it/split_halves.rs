//! `--split` and spans that are two lines.

use crate::invocation::{Merged, RunDir};
use crate::perfetto::assert_no_errors;
use crate::split::{check, split};
use crate::trace::ns;
use format_oracle::writer::Fragment;
use serde_json::Value;

/// Spans of two lines on threads and by ids, in two files of which the later ones' begins end in the earlier ones.
fn halves_run() -> RunDir {
    let dir = RunDir::new();
    let line = |pid: u32, ph: &str, ts: u32, rest: &str| {
        format!(r#"{{"ph":"{ph}","pid":{pid},"tid":{pid},"ts":{ts},"cat":"c"{rest}}}"#)
    };
    let mut one = Fragment::foreign(20);
    let mut other = Fragment::foreign(21);
    for round in 0..200 {
        let at = 1_000 * round;
        let name = format!(r#","name":"step {round}""#);
        let id = format!(r#","id2":{{"global":"0x{round:x}"}},"name":"request {round}""#);
        one.line(&line(20, "B", at + 1, &name));
        one.line(&line(20, "B", at + 100, r#","name":"inner""#));
        if let Some(before) = round.checked_sub(3) {
            let id = format!(r#","id2":{{"global":"0x{before:x}"}},"name":"request {before}""#);
            one.line(&line(20, "e", at + 150, &id));
        }
        one.line(&line(20, "E", at + 900, ""));
        one.line(&line(20, "E", at + 950, r#","args":{"tokens":8}"#));
        other.line(&line(21, "b", at + 10, &id));
        other.line(&line(21, "i", at + 20, r#","s":"t","name":"queued""#));
        if round % 40 == 0 {
            other.line(&line(21, "B", at + 30, r#","name":"phase""#));
        }
        if round % 40 == 39 {
            other.line(&line(21, "E", at + 999, ""));
        }
    }
    one.write_here(&dir.fragments());
    other.write_here(&dir.fragments());
    dir
}

#[test]
fn begins_and_ends_are_in_all_parts_of_their_span() {
    let dir = halves_run();
    let mut whole = Merged::of(&[], &[dir.path()]);
    // The naive filter needs each begin before its end.
    whole.trace.events.sort_by_key(ns_or_zero);
    let (parts, _) = split(dir.path(), &[], "20kB");
    assert!(parts.len() > 5);
    let repeated = check(&whole, &parts, "halves");
    assert!(repeated > 20, "{repeated}");
    let test = "begins_and_ends_are_in_all_parts_of_their_span";
    for part in &parts {
        assert_no_errors(test, &part.bytes, &["halves"]);
        assert!(part.bytes.len() <= 20_000, "{}", part.bytes.len());
        for phases in ["BE", "be"] {
            let [begins, ends] = [0, 1].map(|at| part.trace.phase(&phases[at..=at]).len());
            let few = (ends..=ends + 3).contains(&begins);
            assert!(few, "{phases}: {begins} {ends}");
        }
    }
}

fn ns_or_zero(event: &Value) -> i64 {
    event["ts"].as_f64().map_or(0, |_| ns(&event["ts"]))
}
