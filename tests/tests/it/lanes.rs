//! Spans of tasks in the merged trace: none is lost, and nothing overlaps on a row without nesting, whoever ends first.

use crate::host;
use e2e::chance::rounds;
use e2e::host_support::{Merged, Outcome, scratch};
use format_oracle::reader::read_dir;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trace_merge::check::{Rule, check};

fn recorded(dir: &Path, arguments: &[&str]) -> Outcome {
    host(dir, arguments).run()
}

/// Asserts that no two spans overlap on a row unless one is inside the other.
fn assert_nested(merged: &Merged) {
    let (folder, trace) = (scratch(), json!({"traceEvents": merged.events()}));
    let path = folder.path().join("trace.json");
    std::fs::write(&path, trace.to_string()).unwrap();
    let overlaps = check(&path).unwrap().findings.into_iter();
    let overlaps = overlaps.filter(|finding| finding.rule == Rule::Overlap);
    assert_eq!(overlaps.count(), 0);
}

/// The last name of each row that has a span of this name.
fn row_names(merged: &Merged, name: &str) -> BTreeSet<String> {
    let row = |event: &Value| (event["pid"].as_u64(), event["tid"].as_u64());
    let named = merged.of_name("thread_name");
    let names: BTreeMap<_, _> = named
        .map(|event| (row(event), event["args"]["name"].as_str()))
        .collect();
    let spans = merged.of_name(name);
    spans
        .filter_map(|event| Some((*names.get(&row(event))?)?.to_owned()))
        .collect()
}

fn one(name: &str) -> BTreeSet<String> {
    BTreeSet::from([name.to_owned()])
}

#[test]
fn spans_of_tasks_nest_whatever_ends_first() {
    for threads in ["1", "4"] {
        let dir = scratch();
        let spans = rounds(1000, 3000);
        let arguments = ["tasks", threads, "7", &spans.to_string()];
        let _outcome = recorded(dir.path(), &arguments);
        let recording = read_dir(dir.path());
        assert_eq!(
            (recording.damage, recording.lost, recording.unfinished),
            (vec![], 0, vec![])
        );
        let merged = Merged::newest(dir.path());
        assert_nested(&merged);
        assert_eq!(merged.spans(), 7 * spans as u64);
        assert!(merged.threads() >= 7, "{} rows", merged.threads());
        for task in 0..7 {
            assert_eq!(merged.count(&format!("task {task}")), spans as u64);
        }
        // Lanes change hands, so that a row has the name of its last task; but it has one.
        let names = row_names(&merged, "task 3");
        assert!(!names.is_empty());
        assert!(
            names.iter().all(|name| name.starts_with("Task-")),
            "{names:?}"
        );
    }
}

/// What is open at a kill or at the end of recording, as name and row, with the rows numbered in their order.
fn unfinished(events: &[Value]) -> Vec<(&str, usize)> {
    let begun: Vec<&Value> = events.iter().filter(|event| event["ph"] == "B").collect();
    let mut rows: Vec<&Value> = Vec::new();
    let mut found = Vec::new();
    for event in begun {
        let known = rows.iter().position(|row| **row == event["tid"]);
        let row = known.unwrap_or_else(|| {
            rows.push(&event["tid"]);
            rows.len() - 1
        });
        found.push((event["name"].as_str().expect("a name"), row));
    }
    found
}

#[test]
fn what_is_open_is_shown_within_what_it_lies_in() {
    for ending in ["kill", "finish"] {
        let dir = scratch();
        let outcome = recorded(dir.path(), &["open-lanes", ending]);
        let expected = [
            ("outer", 0),
            ("middle", 0),
            ("inner", 0),
            ("orphan", 1),
            ("after", 2),
        ];
        if ending == "kill" {
            let _killed = outcome.was_killed();
            let second = read_dir(dir.path()).unfinished;
            assert_eq!(unfinished(&second), expected, "the second reader");
        }
        let merged = Merged::newest(dir.path());
        assert_eq!(unfinished(merged.events()), expected, "{ending}");
        let of = |name| &merged.event(name)["tid"];
        assert_eq!((of("done"), merged.damage()), (of("outer"), vec![]));
        let named = [
            ("inner", "Task-1"),
            ("after", "Task-3"),
            ("orphan", "Task-2"),
        ];
        let known = if ending == "finish" { 3 } else { 2 };
        for (name, row) in &named[..known] {
            assert_eq!(row_names(&merged, name), one(&format!("{row} (async)")));
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
    assert_eq!(row_names(&merged, "kept"), one("Task-kept (async)"));
    assert_eq!(row_names(&merged, "unnamed"), one("async 1"));
}
