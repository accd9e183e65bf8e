//! Oversized events, values that panic, and more call sites than a ring can list.

use crate::{HOST, host};
use e2e::host_support::{HostRecording, Merged, scratch, undisturbed};
use format_oracle::reader::read_dir;

#[test]
fn oversized_events_are_cut_written_past_the_ring_or_counted() {
    let dir = scratch();
    let _outcome = undisturbed(HOST, dir.path(), &["oversized"]).quiet();
    let found = HostRecording::in_dir(dir.path());
    let counts = found.counts();
    assert_eq!((counts["large"], counts["after"], found.lost), (1, 10, 1));
    let recording = read_dir(dir.path());
    assert_eq!(recording.damage, Vec::<String>::new());
    for kind in ["process_name", "thread_name"] {
        let named = |event: &&serde_json::Value| {
            let name = event["args"]["name"].as_str().unwrap_or_default();
            event["name"] == kind && name.starts_with("nnn") && name.len() == 1024
        };
        assert_eq!(recording.events.iter().filter(named).count(), 1, "{kind}");
    }
}

#[test]
fn a_value_that_panics_only_loses_its_own_event() {
    let dir = scratch();
    let _outcome = undisturbed(HOST, dir.path(), &["panicking"]).quiet();
    HostRecording::in_dir(dir.path()).assert_exactly(&[("after", 100)]);
}

#[test]
fn issue_47_cut_and_invalid_values_are_counted_and_not_lost() {
    let dir = scratch();
    let _outcome = undisturbed(HOST, dir.path(), &["unfit"]).quiet();
    let recording = read_dir(dir.path());
    assert_eq!((recording.damage, recording.lost), (vec![], 0));
    let bad = recording.events.iter();
    let bad: Vec<_> = bad.filter(|event| event["name"] == "no json").collect();
    let expected = serde_json::json!({"before": 1, "value": null, "after": 2});
    assert_eq!(bad.len(), 3);
    assert!(bad.iter().all(|event| event["args"] == expected), "{bad:?}");
    let merged = Merged::newest(dir.path());
    let report = merged.report();
    assert_eq!((report.losses.events, report.damage.total), (0, 0));
    let drawn = recording.events.iter().filter(|event| event["ph"] == "C");
    let mut drawn: Vec<_> = drawn.map(|event| event["args"].to_string()).collect();
    drawn.sort_unstable();
    let numbers = r#"{"busy":1,"idle":0,"n":2}"#;
    let busy = r#"{"busy":1}"#;
    assert_eq!(drawn, [numbers, busy, busy, r#"{"half":0.5}"#]);
    let changed = report.losses.list.iter();
    let mut changed: Vec<_> = changed
        .map(|loss| (loss.cause.as_str(), loss.events, loss.changed))
        .collect();
    changed.sort_unstable();
    assert_eq!(
        changed,
        [("bad_series", 0, 8), ("bad_value", 0, 3), ("cut", 0, 3)]
    );
}

#[test]
fn a_crash_shows_the_right_names_when_the_site_table_is_full() {
    let dir = scratch();
    let host = host(dir.path(), &["many-sites-then-killed"]);
    let _killed = host.run().was_killed();
    let unfinished = read_dir(dir.path()).unfinished;
    let mut names: Vec<_> = unfinished
        .iter()
        .map(|span| span["name"].as_str())
        .collect();
    names.sort_unstable();
    let expected = ["after", "beyond on a lane", "beyond on the stack"];
    assert_eq!(names, expected.map(Some));
}
