//! Spans of tasks in the merged trace: none is lost, and nothing overlaps on a row without nesting, whoever ends first.

use crate::host;
use e2e::chance::rounds;
use e2e::host_support::{Merged, scratch};
use format_oracle::reader::read_dir;
use serde_json::{Value, json};
use trace_merge::check::{Rule, check};

/// Asserts that no two spans overlap on a row unless one is inside the other.
fn assert_nested(merged: &Merged) {
    let (folder, trace) = (scratch(), json!({"traceEvents": merged.events()}));
    let path = folder.path().join("trace.json");
    std::fs::write(&path, trace.to_string()).unwrap();
    let overlaps = check(&path).unwrap().findings.into_iter();
    let overlaps = overlaps.filter(|finding| finding.rule == Rule::Overlap);
    assert_eq!(overlaps.count(), 0);
}

#[test]
fn spans_of_tasks_nest_whatever_ends_first() {
    for threads in ["1", "4"] {
        let dir = scratch();
        let spans = rounds(1000, 3000);
        let arguments = ["tasks", threads, "7", &spans.to_string()];
        let _outcome = host(dir.path(), &arguments).run().quiet();
        let recording = read_dir(dir.path());
        let wrong = (recording.damage, recording.lost, recording.unfinished);
        assert_eq!(wrong, (vec![], 0, vec![]));
        let merged = Merged::newest(dir.path());
        assert_nested(&merged);
        assert_eq!(merged.spans(), 7 * spans as u64);
        assert!(merged.rows() >= 7, "{} rows", merged.rows());
        for task in 0..7 {
            assert_eq!(merged.count(&format!("task {task}")), spans as u64);
        }
        // Lanes change hands, so that a row has the name of its last task; but it has one.
        let names = merged.rows_of("task 3");
        let are_named = names.iter().all(|name| name.starts_with("Task-"));
        assert!(!names.is_empty() && are_named, "{names:?}");
    }
}

/// What is open at a kill or at the end of recording, as name and row, with the rows numbered in their order.
fn unfinished(events: &[Value]) -> Vec<(&str, usize)> {
    let mut rows: Vec<&Value> = Vec::new();
    let begun = events.iter().filter(|event| event["ph"] == "B");
    let named = begun.map(|event| {
        if !rows.contains(&&event["tid"]) {
            rows.push(&event["tid"]);
        }
        let row = rows.iter().position(|row| **row == event["tid"]);
        (
            event["name"].as_str().expect("a name"),
            row.expect("it is there"),
        )
    });
    named.collect()
}

#[test]
fn what_is_open_is_shown_within_what_it_lies_in() {
    for ending in ["die", "finish"] {
        let dir = scratch();
        let outcome = host(dir.path(), &["open-lanes,", ending]).run();
        let expected = [
            ("outer", 0),
            ("middle", 0),
            ("inner", 0),
            ("orphan", 1),
            ("after", 2),
        ];
        if ending == "die" {
            let _killed = outcome.was_killed();
            let second = read_dir(dir.path()).unfinished;
            assert_eq!(unfinished(&second), expected, "the second reader");
        }
        let merged = Merged::newest(dir.path());
        assert_eq!(unfinished(merged.events()), expected, "{ending}");
        let of = |name| &merged.event(name)["tid"];
        assert_eq!((of("done"), merged.damage()), (of("outer"), vec![]));
        let named = [("inner", 1), ("after", 3), ("orphan", 2)];
        let known = if ending == "finish" { 3 } else { 2 };
        for (name, task) in &named[..known] {
            let row = format!("Task-{task} (async)");
            assert_eq!(merged.rows_of(name), [row.as_str()].into());
        }
    }
}

#[test]
fn names_of_rows_outlive_the_segments_they_were_told_in() {
    let dir = scratch();
    let host = host(dir.path(), &["named-lanes", "60000"]);
    let outcome = host.variable("SA_PROFILE_MAX_MB", "4").run();
    assert_eq!(outcome.stdout, "named-lanes 60000\n");
    let merged = Merged::newest(dir.path());
    assert!(merged.lost() > 10_000, "segments were removed");
    assert_nested(&merged);
    assert_eq!(merged.rows_of("kept"), ["Task-kept (async)"].into());
    assert_eq!(merged.rows_of("unnamed"), ["async 1"].into());
}
