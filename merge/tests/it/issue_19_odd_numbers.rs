//! Numbers that JSON has not (issue 19, 12): Python's `json.dumps` writes `NaN` and `Infinity`, and the events that hold them stay.

use crate::foreign::put;
use crate::invocation::{Merged, RunDir};
use crate::pypto;
use format_oracle::writer::Process;
use format_oracle::writer::line::{On, stream};
use serde_json::{Value, json};

/// Args with every such number, and texts that only look like them.
const ODD: &str =
    r#""a":NaN,"b":[Infinity,{"c":-Infinity}],"d":"NaN \"Infinity","e":-1,"request_id":"r-1""#;

fn mended() -> Value {
    json!({"a": null, "b": [null, {"c": null}], "d": "NaN \"Infinity", "e": -1, "request_id": "r-1"})
}

fn assert_mended(merged: &Merged, events: u64) {
    let spans = merged.trace.all_named("odd");
    assert_eq!(spans.len() as u64, events, "{}", merged.report.0);
    for span in spans {
        assert_eq!(span["args"], mended(), "{span}");
    }
    let report = &merged.report.0;
    assert_eq!(report["damage_total"], 0, "{report}");
    assert_eq!(report["repaired_total"], events);
    let by_kind = json!({"repaired_number": events});
    assert_eq!(report["repaired_by_kind"], by_kind);
    assert_eq!(merged.trace.document["otherData"]["repaired"], by_kind);
}

fn line(ts: u64) -> String {
    pypto::line("odd", ts, 2, ODD)
}

/// The same as `json.dumps` writes it.
fn python(ts: u64) -> String {
    line(ts).replace("\":", "\": ").replace(",\"", ", \"")
}

#[test]
fn issue_19_lines_of_other_recorders_keep_their_events() {
    let dir = RunDir::of_lines("7", &[line(10), python(20), line(30)]);
    for options in [
        &[][..],
        &["--sort"],
        &["--last", "1s"],
        &["--name", "odd"],
        &["--verbatim"],
    ] {
        assert_mended(&Merged::of(options, &[dir.path()]), 3);
    }
    // What stands behind such a number is found all the same.
    let merged = Merged::of(&["--request", "r-1"], &[dir.path()]);
    assert_eq!(merged.trace.all_named("odd").len(), 3);
    let merged = Merged::of(&[], &[dir.path()]);
    assert_eq!(merged.report.0["links"]["requests"], 1);
    // So are lines outside of blocks.
    let mut fragment = Process::new(7).fragment();
    fragment.line(&line(10));
    assert_mended(&RunDir::of(&fragment).merge(), 1);
}

#[test]
fn issue_19_documents_keep_their_events() {
    let dir = RunDir::new();
    let (one, other) = (python(10), line(20));
    for text in [
        format!("{{\"schemaVersion\":1,\"x\":{{\"y\":NaN}},\"traceEvents\":[{one},\n{other}]}}"),
        format!("[{one},\n\n{other}"),
        format!("{one}\n{other}\n"),
    ] {
        let path = put(&dir, "t.json", text.as_bytes());
        assert_mended(&Merged::of(&[], &[&path]), 2);
    }
}

#[test]
fn issue_19_names_beside_such_a_number_are_read() {
    let name =
        r#"{"ph":"M","pid":7,"tid":7,"name":"process_name","args":{"load":NaN,"name":"worker"}}"#;
    let dir = RunDir::of_lines("7", &[name, &line(10)]);
    let merged = Merged::of(&[], &[dir.path()]);
    assert_eq!(merged.report.0["processes"][0]["name"], "worker");
    assert_eq!(merged.report.number("repaired_total"), 2);
}

#[test]
fn issue_19_a_time_that_is_no_number_is_damage() {
    let (dir, on) = (RunDir::new(), On { pid: 7, tid: 7 });
    let good = on.span(1_000, 5, "good", "");
    let ts = line(10).replace("\"ts\":10", "\"ts\":NaN");
    let dur = line(10).replace("\"dur\":2", "\"dur\":Infinity");
    dir.put("7", &stream(&[&good, &ts, &dur]));
    let document = format!("[{ts},{dur},{good}]");
    let document = put(&dir, "t.json", document.as_bytes());
    for (options, path) in [
        (&[][..], dir.path()),
        (&["--sort"], dir.path()),
        (&[], &document),
    ] {
        let merged = Merged::of(options, &[path]);
        assert_eq!(merged.trace.names(), ["good"]);
        assert_eq!(merged.report.kind("bad_json"), 2);
        assert_eq!(merged.report.number("repaired_total"), 0);
    }
}
