//! What C programs record, read from the merged trace.

use crate::stage::{Stage, Trace, run};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;

#[test]
fn every_kind_of_event_is_in_the_trace_as_it_was_recorded() {
    let trace = Stage::recorded("events.c");
    let all = json!({"int": i64::MIN, "uint": u64::MAX, "double": 0.25, "nan": null, "bool": true, "no": false, "string": "a\"b\n",
        "cut": "a\u{0}b", "none": null, "ints": [1, -2], "doubles": [0.5], "strings": ["x", null, ""], "empty": []});
    for name in ["args at begin", "args one by one", "instant", "async args"] {
        assert_eq!(trace.one(name)["args"], all, "{name}");
    }
    assert_eq!(trace.one("plain")["args"], Value::Null);
    assert_eq!(
        trace.one("grown")["args"],
        json!({"first": 1, "later": 2, "last": 3})
    );
    assert_eq!(
        trace.one("counted")["args"],
        json!({"running": 3, "waiting": 0.5})
    );
    assert_eq!(
        (&trace.one("counted")["ph"], &trace.one("instant")["ph"]),
        (&json!("C"), &json!("i"))
    );
    let retro = trace.one("retro");
    assert_eq!(
        (&retro["dur"], &retro["args"]),
        (&json!(1500.0), &json!({"rows": 2}))
    );
    assert_eq!(trace.one("ended now")["dur"], json!(2.0));
    let whole = ["s", "t", "f"];
    for (name, category) in [
        ("here", "test"),
        ("everywhere", "test"),
        ("request", "flow"),
    ] {
        let found: Vec<&str> = trace
            .named(name)
            .iter()
            .filter_map(|flow| flow["ph"].as_str())
            .collect();
        assert_eq!(found, whole, "{name}");
        assert!(
            trace.named(name).iter().all(|flow| flow["cat"] == category),
            "{name}"
        );
    }
    assert!(trace.named("verbose").is_empty(), "not recorded by default");
    assert_eq!(trace.one("kernel")["cat"], "k");
    let names: BTreeSet<&str> = trace
        .events
        .iter()
        .filter_map(|event| event["args"]["name"].as_str())
        .collect();
    assert!(names.contains("renamed thread"), "{names:?}");
    assert!(
        names.iter().any(|name| name.starts_with("c-process")),
        "{names:?}"
    );
    assert_eq!(trace.report.losses.events, 0);
}

#[test]
fn what_makes_no_sense_is_recorded_as_far_as_it_does_or_not_at_all() {
    let trace = Stage::recorded("odd.c");
    let null = trace.one("(null)");
    assert_eq!(
        (&null["cat"], &null["args"]),
        (
            &json!("(null)"),
            &json!({"(null)": 1, "s": null, "n": null, "list": null, "kind": null})
        )
    );
    let broken = trace.one("br\u{FFFD}ken");
    assert_eq!(
        (&broken["cat"], &broken["args"]),
        (&json!("c\u{FFFD}"), &json!({"k\u{FFFD}": "v\u{FFFD}"}))
    );
    assert_eq!(
        trace.one("long")["args"]["text"].as_str().unwrap().len(),
        (16 << 10) + "…[+3616 bytes]".len()
    );
    assert_eq!(trace.one("ended twice")["args"], Value::Null);
    assert_eq!(trace.one("after")["args"], json!({"own": 1}));
    assert_eq!(trace.one("ended elsewhere")["args"], Value::Null);
    assert_eq!(trace.one("async twice")["args"], json!({"before": 1}));
    assert!(trace.named("never").is_empty());
    for name in ["outer", "inner"] {
        trace.one(name);
    }
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
    let drawn = trace.named("counter").into_iter();
    let drawn: Vec<_> = drawn.map(|counter| &counter["args"]).collect();
    assert_eq!(drawn, [&json!({"yes": 1, "no": 0, "half": 0.5})]);
    assert!(trace.named("undrawn").is_empty());
    let left_open = trace.named("left open");
    assert_eq!(
        left_open.len(),
        4096,
        "all that are open show as unfinished"
    );
    assert!(left_open.iter().all(|span| span["ph"] == "B"));
}

#[test]
fn the_child_of_a_fork_records_its_own_spans_and_ends_none_of_its_parents() {
    let trace = Stage::recorded("fork.c");
    let pid = |name: &str| trace.one(name)["pid"].as_u64();
    let (parent, child) = (pid("parent"), pid("child"));
    assert!(parent.is_some() && child.is_some() && parent != child);
    assert_eq!(
        (pid("open at fork"), pid("async at fork")),
        (parent, parent)
    );
    assert_eq!(
        (pid("child async"), pid("grandchild")),
        (child, pid("grandchild"))
    );
    assert!(pid("grandchild") != child && pid("grandchild") != parent);
    assert_eq!(trace.one("open at fork")["args"], json!({"by": "parent"}));
    assert_eq!(trace.one("async at fork")["args"], json!({"by": "parent"}));
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
    assert!(
        handed
            .iter()
            .all(|span| span["ph"] == "X" && span["args"] == json!({"begun": true, "ended": true}))
    );
    assert_eq!(
        trace.named("raced").len(),
        500,
        "two threads end each, once"
    );
    let tids: BTreeSet<u64> = work
        .iter()
        .filter_map(|span| span["tid"].as_u64())
        .collect();
    assert!(
        handed
            .iter()
            .all(|span| !tids.contains(&span["tid"].as_u64().unwrap())),
        "on lanes of their own"
    );
    assert_eq!(trace.report.losses.events, 0);
}

#[test]
fn without_the_environment_nothing_is_recorded_and_no_file_appears() {
    let stage = Stage::new();
    let program = stage.program("off.c");
    let files = || -> BTreeSet<_> {
        std::fs::read_dir(stage.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect()
    };
    let before = files();
    assert_eq!(run(&mut stage.command(&program)), "");
    assert_eq!(files(), before);
}

#[test]
fn a_thread_that_is_to_be_cancelled_is_so_in_none_of_our_calls() {
    let trace = Stage::recorded("cancelled.c");
    for (name, count) in [
        ("span", 2),
        ("async", 2),
        ("instant", 2),
        ("one of many", 20_000),
        ("large", 2),
    ] {
        assert_eq!(trace.named(name).len(), count, "{name}");
    }
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
    assert_eq!(trace.named("done").len(), 1000);
    let (step, request) = (trace.one("open"), trace.one("open async"));
    assert_eq!((&step["ph"], &request["ph"]), (&json!("B"), &json!("B")));
    let args = json!({"batch": 7, "request_id": "cmpl-2", "tokens": 42, "unfinished": true});
    assert_eq!((&step["args"], &step["cat"]), (&args, &json!("test")));
    let args = json!({"request_id": "cmpl-1", "unfinished": true});
    assert_eq!(request["args"], args);
}
