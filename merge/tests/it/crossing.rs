//! Spans of which begin and end are events of their own, at the edges of a window.

use crate::invocation::{Merged, RunDir};
use crate::trace::Trace;
use format_oracle::writer::line::{micros, stream};

/// Begins, ends and what else has a name, by name and phase, in their order.
fn found(trace: &Trace) -> Vec<String> {
    let word = |event: &serde_json::Value| {
        let [name, phase] = ["name", "ph"].map(|key| event[key].as_str().unwrap());
        let is_cut = event["args"]["sa_cut"] == true;
        let cut = if is_cut { " cut" } else { "" };
        format!("{name} {phase}{cut}")
    };
    trace.shown().map(word).collect()
}

fn put(lines: &mut Vec<String>, phase: &str, name: &str, at_ms: u64) {
    let (ts, id) = (micros(1_000_000 * at_ms), name.len());
    let id = match phase {
        "b" | "n" | "e" => format!(r#","id":"{id}""#),
        _ => String::new(),
    };
    lines.push(format!(
        r#"{{"name":"{name}","cat":"c","ph":"{phase}","ts":{ts},"pid":900,"tid":901{id}}}"#
    ));
}

#[test]
fn a_span_of_two_halves_that_crosses_an_edge_is_shown_whole() {
    let dir = RunDir::new();
    let mut lines = Vec::new();
    let events = "B before 1, b async 1, E before 2, B over 3, B into 4, n async 5, E into 12, \
        B inside 13, n async 14, E inside 15, B out 18, E out 25, B behind 26, E behind 27, \
        e async 28, E over 30, B open 31";
    for event in events.split(", ") {
        let words: Vec<&str> = event.split(' ').collect();
        put(&mut lines, words[0], words[1], words[2].parse().unwrap());
    }
    dir.put("900", &stream(&lines));
    let merged = Merged::of(&["--from=9ms", "--to=19ms"], &[dir.path()]);
    let expected = "async b cut, over B cut, into B cut, into E, inside B, async n, inside E, \
        out B, out E cut, async e cut, over E cut";
    assert_eq!(found(&merged.trace).join(", "), expected);
    let window = &merged.report.0["window"];
    assert_eq!(window["spans_cut"], 4);
    assert_eq!(window["events_left_out"], 6);
    assert_eq!(merged.trace.document["otherData"].get("filter"), None);
    let named = Merged::of(&["--from=9ms", "--to=19ms", "--name=over"], &[dir.path()]);
    assert_eq!(found(&named.trace), ["over B cut", "over E cut"]);
}
