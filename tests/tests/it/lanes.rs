//! Spans of tasks in the merged trace: none is lost, and nothing overlaps on a row without nesting, whoever ends first.

use crate::host;
use e2e::chance::rounds;
use e2e::host_support::{Merged, Outcome, scratch};
use format_oracle::reader::read_dir;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn recorded(dir: &Path, arguments: &[&str]) -> Outcome {
    host(dir, arguments).run()
}

/// Whole ns of a time in µs.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test's times are hours at most"
)]
fn ns(time: &Value) -> u64 {
    (time.as_f64().expect("a time") * 1000.0).round() as u64
}

/// What is shown of a span: row, start, and its end turned round so that the longer one of two sorts first.
type Shown = ((u64, u64), u64, Reverse<u64>);

fn shown(event: &Value) -> Shown {
    let id = |key: &str| event[key].as_u64().expect("an id");
    let start = ns(&event["ts"]);
    let end = start + ns(&event["dur"]);
    ((id("pid"), id("tid")), start, Reverse(end))
}

/// Fails if two spans overlap on a row and neither lies in the other; says how many spans and rows there are.
fn nested(events: &[Value]) -> (usize, usize) {
    let spans = events.iter().filter(|event| event["ph"] == "X");
    let mut spans: Vec<Shown> = spans.map(shown).collect();
    spans.sort_unstable();
    let mut around: Vec<Shown> = Vec::new();
    for span in &spans {
        let is_over = |outer: &mut Shown| outer.0 != span.0 || outer.2.0 <= span.1;
        while around.pop_if(is_over).is_some() {}
        if let Some(outer) = around.last() {
            assert!(span.2.0 <= outer.2.0, "{span:?} reaches out of {outer:?}");
        }
        around.push(*span);
    }
    let rows: BTreeSet<_> = spans.iter().map(|span| span.0).collect();
    (spans.len(), rows.len())
}

/// The last name of each row that has a span of this name.
fn row_names(events: &[Value], name: &str) -> BTreeSet<String> {
    let row = |event: &Value| (event["pid"].as_u64(), event["tid"].as_u64());
    let named = events.iter().filter(|event| event["name"] == "thread_name");
    let names: BTreeMap<_, _> = named
        .map(|event| (row(event), event["args"]["name"].as_str()))
        .collect();
    let spans = events.iter().filter(|event| event["name"] == name);
    spans
        .filter_map(|event| Some((*names.get(&row(event))?)?.to_owned()))
        .collect()
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
        let (shown, rows) = nested(merged.events());
        assert_eq!(shown, 7 * spans);
        assert!(rows >= 7, "{rows} rows");
        for task in 0..7 {
            assert_eq!(merged.count(&format!("task {task}")), spans as u64);
        }
        // Lanes change hands, so that a row has the name of its last task; but it has one.
        let names = row_names(merged.events(), "task 3");
        assert!(!names.is_empty());
        assert!(
            names.iter().all(|name| name.starts_with("Task-")),
            "{names:?}"
        );
    }
}

#[test]
fn most_spans_are_shown_within_their_parents() {
    let dir = scratch();
    let count = rounds(4096, 16_384);
    let _outcome = recorded(dir.path(), &["requests", &count.to_string()]);
    let merged = Merged::newest(dir.path());
    assert_eq!(merged.damage(), Vec::<String>::new());
    assert_eq!(nested(merged.events()), (2 * count, count));
    let named = |name: &str| row_names(merged.events(), name);
    assert_eq!(named("request"), named("step"));
    assert_eq!(
        named("step"),
        BTreeSet::from(["requests (async)".to_owned()])
    );
    let names = merged.events().iter();
    let names = names.filter(|event| event["name"] == "thread_name");
    assert!(
        names.count() <= count + 2,
        "lanes that show nothing have no name"
    );
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
        let of = |name: &str| {
            let mut events = merged.events().iter();
            let event = events.find(|event| event["name"] == name && event["ph"] != "M");
            event.expect("an event")["tid"].clone()
        };
        assert_eq!((of("done"), merged.damage()), (of("outer"), vec![]));
        let names = |name: &str| row_names(merged.events(), name);
        assert_eq!(
            names("inner"),
            BTreeSet::from(["Task-1 (async)".to_owned()])
        );
        assert_eq!(
            names("after"),
            BTreeSet::from(["Task-3 (async)".to_owned()])
        );
        if ending == "finish" {
            assert_eq!(
                names("orphan"),
                BTreeSet::from(["Task-2 (async)".to_owned()])
            );
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
    nested(merged.events());
    let names = |name: &str| row_names(merged.events(), name);
    assert_eq!(
        names("kept"),
        BTreeSet::from(["Task-kept (async)".to_owned()])
    );
    assert_eq!(names("unnamed"), BTreeSet::from(["async 1".to_owned()]));
}
