//! Tests `sa-profile snapshot`, which copies a run while it records.

use crate::program::{Ended, Ground};

#[test]
fn a_run_that_records_is_copied_aside() {
    let ground = Ground::new();
    let host = ground.host("engine");
    let snapshot = || ground.run(&["snapshot", "out", "copy"]);
    let done = snapshot();
    assert_eq!(done, Ended::done(done.stdout.as_str()));
    assert!(done.stdout.contains("copy: 1 fragment, "), "{done:?}");
    let again = snapshot();
    assert_eq!(
        again.code,
        Some(2),
        "what is there already is not written over: {again:?}"
    );
    host.end();
    let status = ground.json(&["status", "--json", "copy"]);
    assert_eq!(status["processes"][0]["name"], "engine");
}

/// A process with open spans at the time of a snapshot is shown as running, whatever happens to it later.
#[test]
fn issue_47_who_runs_at_a_snapshot_is_running_in_it() {
    let ground = Ground::new();
    let engine = ground.host_with(&["engine", "open"], &[]);
    drop(ground.host_with(&["worker", "open"], &[]));
    let done = ground.run(&["snapshot", "out", "copy"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    drop(engine);
    let status = ground.json(&["status", "--json", "copy"]);
    let state = |nth: usize| &status["processes"][nth]["state"];
    assert_eq!((state(0), state(1)), (&"running".into(), &"killed".into()));
    let options = trace_merge::Options {
        output: trace_merge::Output::File(ground.path("t.json")),
        ..trace_merge::Options::new([ground.path("copy")])
    };
    let merged = trace_merge::merge(&options).unwrap();
    assert_eq!(status["events"].as_u64(), Some(merged.events.total));
    let processes = merged.processes.iter();
    let ends = processes.map(|process| (process.was_running, process.end));
    let expected = [(true, None), (false, Some("killed"))];
    assert_eq!(ends.collect::<Vec<_>>(), expected);
    let text = merged.text();
    assert!(text.contains(", still running at the snapshot\n"), "{text}");
    for (words, line) in [
        (
            "status",
            "still running when this snapshot was taken: engine (pid ",
        ),
        (
            "report",
            "1 process was still running when the snapshot was taken",
        ),
        (
            "watch --once",
            "was still running when this snapshot was taken",
        ),
        ("watch --once", "1 of 2 processes alive, 1 died"),
    ] {
        let said = ground.run_words(&format!("{words} copy")).stdout;
        assert!(said.contains(line), "{said}");
    }
}
