//! Spans of tasks in the merged trace: none is lost, and spans on a track never overlap without nesting, whichever ends first.

use crate::host;
use e2e::chance::rounds;
use e2e::host_support::{Merged, scratch};
use format_oracle::reader::read_dir;
use serde_json::{Value, json};
use trace_merge::check::{Rule, check};

/// Asserts that spans on the same track only overlap if one contains the other.
fn assert_nested(merged: &Merged) {
    let (folder, trace) = (scratch(), json!({"traceEvents": merged.events()}));
    let path = folder.path().join("trace.json");
    std::fs::write(&path, trace.to_string()).unwrap();
    let overlaps = check(&path).unwrap().findings.into_iter();
    let overlaps = overlaps.filter(|finding| finding.rule == Rule::Overlap);
    assert_eq!(overlaps.count(), 0);
}

#[test]
fn spans_of_tasks_nest_whichever_ends_first() {
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
        assert!(merged.tracks() >= 7, "{} tracks", merged.tracks());
        for task in 0..7 {
            assert_eq!(merged.count(&format!("task {task}")), spans as u64);
        }
        // Tasks share lanes one after the other, so a track has the name of its last task.
        let names = merged.tracks_with("task 3");
        let are_named = names.iter().all(|name| name.starts_with("Task-"));
        assert!(!names.is_empty() && are_named, "{names:?}");
    }
}

/// Returns the name and track of each span that is open at a kill or at the end of recording. Tracks are numbered in the order of their first span.
fn unfinished(events: &[Value]) -> Vec<(&str, usize)> {
    let mut tracks: Vec<&Value> = Vec::new();
    let begun = events.iter().filter(|event| event["ph"] == "B");
    let named = begun.map(|event| {
        if !tracks.contains(&&event["tid"]) {
            tracks.push(&event["tid"]);
        }
        let track = tracks.iter().position(|track| **track == event["tid"]);
        (
            event["name"].as_str().expect("a name"),
            track.expect("it is there"),
        )
    });
    named.collect()
}

#[test]
fn open_spans_are_shown_inside_their_parents() {
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
            let read = read_dir(dir.path()).unfinished;
            assert_eq!(unfinished(&read), expected, "the oracle");
        }
        let merged = Merged::newest(dir.path());
        assert_eq!(unfinished(merged.events()), expected, "{ending}");
        let track = |name| &merged.event(name)["tid"];
        assert_eq!((track("done"), merged.damage()), (track("outer"), vec![]));
        let named = [("inner", 1), ("after", 3), ("orphan", 2)];
        let count = if ending == "finish" { 3 } else { 2 };
        for (name, task) in &named[..count] {
            let expected_track = format!("Task-{task} (async)");
            assert_eq!(merged.tracks_with(name), [expected_track.as_str()].into());
        }
    }
}

#[test]
fn track_names_outlive_the_segments_that_contain_them() {
    let dir = scratch();
    let host = host(dir.path(), &["named-lanes", "60000"]);
    let outcome = host.variable("SA_PROFILE_MAX_MB", "4").run();
    assert_eq!(outcome.stdout, "named-lanes 60000\n");
    let merged = Merged::newest(dir.path());
    assert!(merged.lost() > 10_000, "segments were removed");
    assert_nested(&merged);
    assert_eq!(merged.tracks_with("kept"), ["Task-kept (async)"].into());
    assert_eq!(merged.tracks_with("unnamed"), ["async 1"].into());
}
