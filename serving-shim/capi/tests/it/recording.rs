//! What C programs record, read from the merged trace.

use crate::stage::{Stage, Trace, run};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;

/// Number of events of each of these names.
fn counts<const N: usize>(trace: &Trace, names: [&str; N]) -> [usize; N] {
    names.map(|name| trace.named(name).len())
}

#[test]
fn every_kind_of_event_is_in_the_trace_as_it_was_recorded() {
    let trace = Stage::recorded("events.c");
    let all = json!({"int": i64::MIN, "uint": u64::MAX, "double": 0.25, "nan": null, "bool": true, "no": false, "string": "a\"b\n",
        "cut": "a\u{0}b", "none": null, "ints": [1, -2], "doubles": [0.5], "strings": ["x", null, ""], "empty": []});
    for name in ["args at begin", "args one by one", "async args"] {
        assert_eq!(trace.one(name)["args"], all, "{name}");
    }
    trace.assert_fields(&[
        ("instant", &["ph", "args"], json!(["i", all])),
        ("plain", &["args"], json!([null])),
        (
            "grown",
            &["args"],
            json!([{"first": 1, "later": 2, "last": 3}]),
        ),
        (
            "counted",
            &["ph", "args"],
            json!(["C", {"running": 3, "waiting": 0.5}]),
        ),
        ("retro", &["dur", "args"], json!([1500.0, {"rows": 2}])),
        ("ended now", &["dur"], json!([2.0])),
        ("kernel", &["cat"], json!(["k"])),
    ]);
    for (name, category) in [
        ("here", "test"),
        ("everywhere", "test"),
        ("request", "flow"),
    ] {
        let found = trace.named(name).into_iter();
        let found: Vec<_> = found.map(|flow| (&flow["ph"], &flow["cat"])).collect();
        let whole = [("s", category), ("t", category), ("f", category)];
        assert_eq!(json!(found), json!(whole), "{name}");
    }
    assert!(trace.named("verbose").is_empty(), "not recorded by default");
    let names = trace.events.iter();
    let names: BTreeSet<&str> = names
        .filter_map(|event| event["args"]["name"].as_str())
        .collect();
    let process = |name: &&str| name.starts_with("c-process");
    assert!(
        names.contains("renamed thread") && names.iter().any(process),
        "{names:?}"
    );
    assert_eq!(trace.report.losses.events, 0);
}

#[test]
fn what_makes_no_sense_is_recorded_as_far_as_it_does_or_not_at_all() {
    let trace = Stage::recorded("odd.c");
    let nulls =
        json!({"(null)": 1, "s": null, "n": null, "list": null, "kind": null, "huge": null});
    trace.assert_fields(&[
        ("(null)", &["cat", "args"], json!(["(null)", nulls])),
        (
            "br\u{FFFD}ken",
            &["cat", "args"],
            json!(["c\u{FFFD}", {"k\u{FFFD}": "v\u{FFFD}"}]),
        ),
        ("ended twice", &["args"], json!([null])),
        ("after", &["args"], json!([{"own": 1}])),
        ("ended elsewhere", &["args"], json!([null])),
        ("async twice", &["args"], json!([{"before": 1}])),
        (
            "counter",
            &["args"],
            json!([{"yes": 1, "no": 0, "half": 0.5}]),
        ),
    ]);
    let text = trace.one("long")["args"]["text"].as_str().unwrap();
    assert_eq!(text.len(), (16 << 10) + "…[+3616 bytes]".len());
    let names = ["never", "undrawn", "outer", "inner"];
    assert_eq!(counts(&trace, names), [0, 0, 1, 1]);
    let refused: u64 = trace.output.trim().parse().unwrap();
    assert_eq!(
        (refused, trace.report.losses.events),
        (904, 904),
        "spans beyond the bound are counted"
    );
    let mut losses: BTreeMap<&str, u64> = BTreeMap::new();
    for loss in trace.named("sa_loss") {
        let cause = loss["args"]["cause"].as_str().unwrap();
        *losses.entry(cause).or_default() += loss["args"]["events"].as_u64().unwrap();
    }
    // One text of 20,000 bytes, and five values of counters.
    let expected = [("bad_series", 5), ("cut", 1), ("too_many_open", 904)];
    assert_eq!(losses, BTreeMap::from(expected));
    let left_open = trace.named("left open").into_iter();
    let unfinished = left_open.filter(|span| span["ph"] == "B").count();
    assert_eq!(unfinished, 4096, "all that are open show as unfinished");
    assert_eq!(counts(&trace, ["left open"]), [4096]);
}

#[test]
fn the_child_of_a_fork_records_its_own_spans_and_ends_none_of_its_parents() {
    let trace = Stage::recorded("fork.c");
    let pid = |name: &str| trace.one(name)["pid"].as_u64().unwrap();
    let (parent, child, grandchild) = (pid("parent"), pid("child"), pid("grandchild"));
    assert_eq!(BTreeSet::from([parent, child, grandchild]).len(), 3);
    let args = json!({"by": "parent"});
    for name in ["open at fork", "async at fork"] {
        trace.assert_fields(&[(name, &["pid", "args"], json!([parent, args]))]);
    }
    assert_eq!(pid("child async"), child);
    assert_eq!(
        (trace.report.processes.len(), trace.report.losses.events),
        (3, 0)
    );
}

#[test]
fn threads_record_side_by_side_and_hand_async_spans_on() {
    let trace = Stage::recorded("threads.c");
    let mut per_thread: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let work = trace.named("work");
    for span in &work {
        let of_thread = per_thread.entry(span["tid"].as_u64().unwrap()).or_default();
        of_thread.insert(span["args"]["step"].as_u64().unwrap());
    }
    assert_eq!((work.len(), per_thread.len()), (8 * 2000, 8));
    assert!(per_thread.values().all(|steps| steps.len() == 2000));
    let handed = trace.named("handed on");
    assert_eq!(handed.len(), 8 * 50);
    for span in handed {
        let args = json!({"begun": true, "ended": true});
        assert_eq!((&span["ph"], &span["args"]), (&json!("X"), &args));
        let tid = span["tid"].as_u64().unwrap();
        assert!(!per_thread.contains_key(&tid), "on lanes of their own");
    }
    assert_eq!(counts(&trace, ["raced"]), [500], "two end each, once");
    assert_eq!(trace.report.losses.events, 0);
}

#[test]
fn without_the_environment_nothing_is_recorded_and_no_file_appears() {
    let stage = Stage::new();
    let program = stage.program("off.c");
    let files = || -> BTreeSet<_> {
        let files = std::fs::read_dir(stage.path()).unwrap();
        files.map(|entry| entry.unwrap().file_name()).collect()
    };
    let before = files();
    assert_eq!(run(&mut stage.command(&program)), "");
    assert_eq!(files(), before);
}

#[test]
fn a_thread_that_is_to_be_cancelled_is_so_in_none_of_our_calls() {
    let trace = Stage::recorded("cancelled.c");
    let names = ["span", "async", "instant", "one of many", "large"];
    assert_eq!(counts(&trace, names), [2, 2, 2, 20_000, 2]);
}

#[test]
fn async_spans_beyond_the_bound_are_counted_and_not_recorded() {
    let trace = Stage::recorded("many.c");
    assert_eq!(
        (trace.output.trim(), trace.report.losses.events),
        ("10", 10)
    );
    let spans = trace.named("many");
    let ended = spans.iter().filter(|span| span["ph"] == "X").count();
    assert_eq!(ended, 1, "none of a length that it had not");
}

#[test]
fn issue_19_what_was_recorded_outlives_a_kill() {
    let stage = Stage::new();
    let program = stage.program("killed.c");
    let mut command = stage.command(&program);
    let status = command
        .env("SA_PROFILE_DIR", stage.run_directory())
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(9));
    let trace = Trace::of(&stage.run_directory(), String::new());
    assert_eq!(counts(&trace, ["done"]), [1000]);
    let args = json!({"batch": 7, "request_id": "cmpl-2", "tokens": 42, "unfinished": true});
    let request = json!({"request_id": "cmpl-1", "unfinished": true});
    trace.assert_fields(&[
        ("open", &["ph", "cat", "args"], json!(["B", "test", args])),
        ("open async", &["ph", "args"], json!(["B", request])),
    ]);
}
