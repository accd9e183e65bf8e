//! Checks the merged traces of C programs.

use crate::stage::{program, recorded, stage, trace_of};
use c_programs::{Trace, success};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Counts the events of each of these names.
fn counts<const N: usize>(trace: &Trace, names: [&str; N]) -> [usize; N] {
    names.map(|name| trace.named(name).len())
}

#[test]
fn every_kind_of_event_is_in_the_trace_as_it_was_recorded() {
    let trace = trace_of("events.c");
    let all = json!({"int": i64::MIN, "uint": u64::MAX, "double": 0.25, "nan": null, "bool": true, "no": false, "string": "a\"b\n",
        "cut": "a\u{0}b", "none": null, "ints": [1, -2], "doubles": [0.5], "strings": ["x", null, ""], "empty": []});
    for name in ["args at begin", "args one by one", "async args"] {
        assert_eq!(trace.only(name)["args"], all, "{name}");
    }
    trace.assert_fields(&json!({
        "instant": {"ph": "i", "args": all},
        "plain": {"args": null},
        "grown": {"args": {"first": 1, "later": 2, "last": 3}},
        "counted": {"ph": "C", "args": {"running": 3, "waiting": 0.5}},
        "retro": {"dur": 1500.0, "args": {"rows": 2}},
        "ended now": {"dur": 2.0},
        "kernel": {"cat": "k"},
    }));
    for (name, category) in [
        ("here", "test"),
        ("everywhere", "test"),
        ("request", "flow"),
    ] {
        assert_eq!(trace.phases(name), "stf", "{name}");
        let mut flows = trace.named(name).into_iter();
        assert!(flows.all(|flow| flow["cat"] == category), "{name}");
    }
    assert!(trace.named("verbose").is_empty(), "not recorded by default");
    let mut processes = trace.process_names().into_values();
    assert!(processes.any(|name| name.starts_with("c-process")));
    let mut threads = trace.named("thread_name").into_iter();
    assert!(threads.any(|thread| thread["args"]["name"] == "renamed thread"));
}

#[test]
fn misuse_is_recorded_as_far_as_it_makes_sense_or_not_at_all() {
    let (trace, refused) = recorded("odd.c");
    let broken = "br\u{FFFD}ken";
    let nulls =
        json!({"(null)": 1, "s": null, "n": null, "list": null, "kind": null, "huge": null});
    trace.assert_fields(&json!({
        "(null)": {"cat": "(null)", "args": nulls},
        broken: {"cat": "c\u{FFFD}", "args": {"k\u{FFFD}": "v\u{FFFD}"}},
        "ended twice": {"args": null},
        "after": {"args": {"own": 1}},
        "ended elsewhere": {"args": null},
        "async twice": {"args": {"before": 1}},
        "handed on": {"ph": "X", "args": {"begun": 1, "elsewhere": true}},
        "counter": {"args": {"yes": 1, "no": 0, "half": 0.5}},
    }));
    let text = trace.only("long")["args"]["text"].as_str().unwrap();
    assert_eq!(text.len(), (16 << 10) + "…[+3616 bytes]".len());
    let names = ["never", "undrawn", "outer", "inner", "raced"];
    // Two threads have ended each of the raced spans.
    assert_eq!(counts(&trace, names), [0, 0, 1, 1, 500]);
    // Spans and async spans beyond their limits are counted.
    assert_eq!((refused.trim(), trace.lost()), ("914", 914));
    let mut losses: BTreeMap<&str, u64> = BTreeMap::new();
    for loss in trace.named("sa_loss") {
        let cause = loss["args"]["cause"].as_str().unwrap();
        *losses.entry(cause).or_default() += loss["args"]["events"].as_u64().unwrap();
    }
    // One text of 20,000 bytes and five counter values.
    let expected = [("bad_series", 5), ("cut", 1), ("too_many_open", 914)];
    assert_eq!(losses, BTreeMap::from(expected));
    assert_eq!(trace.unfinished("left open").len(), 4096);
    assert_eq!(counts(&trace, ["left open"]), [4096]);
    let ended = trace.with("name", "many").len();
    assert_eq!(ended, 1, "the spans that were not ended have no duration");
}

#[test]
fn issue_19_the_child_of_a_fork_records_its_own_spans_ends_none_of_its_parents_and_may_be_killed() {
    let trace = trace_of("fork.c");
    let pid = |name: &str| trace.only(name)["pid"].as_u64().unwrap();
    let (parent, child, grandchild) = (pid("parent"), pid("child"), pid("grandchild"));
    assert_eq!(BTreeSet::from([parent, child, grandchild]).len(), 3);
    assert_eq!(pid("child async"), child);
    assert_eq!(trace.processes().len(), 3);
    // The grandchild killed itself.
    assert_eq!(counts(&trace, ["done"]), [1000]);
    let args = json!({"batch": 7, "request_id": "cmpl-2", "tokens": 42, "unfinished": true});
    trace.assert_fields(&json!({
        "open at fork": {"pid": parent, "args": {"by": "parent"}},
        "async at fork": {"pid": parent, "args": {"by": "parent"}},
        "open": {"ph": "B", "cat": "test", "args": args},
        "open async": {"ph": "B", "args": {"request_id": "cmpl-1", "unfinished": true}},
    }));
}

#[test]
fn without_the_environment_nothing_is_recorded_and_no_file_appears() {
    let ground = stage();
    let program = program(&ground, "off.c");
    let files = || std::fs::read_dir(ground.path("")).unwrap().count();
    let before = files();
    assert_eq!(success(&mut ground.command(&program)), "");
    assert_eq!(files(), before);
}

#[test]
fn a_thread_is_not_cancelled_in_our_calls() {
    let trace = trace_of("cancelled.c");
    let names = ["span", "async", "instant", "one of many"];
    assert_eq!(counts(&trace, names), [2, 2, 2, 20_000]);
}
