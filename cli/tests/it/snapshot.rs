//! `sa-profile snapshot`: a run that records, copied aside.

use crate::host::{Host, OPEN};
use crate::run;
use serde_json::Value;
use std::path::Path;

/// Takes a snapshot of a run and returns the output of the command.
fn snapshot(directory: &Path, out: &Path) -> std::process::Output {
    let words = ["snapshot".as_ref(), directory.as_os_str(), out.as_os_str()];
    crate::command(&[]).args(words).output().unwrap()
}

#[test]
fn a_run_that_records_is_copied_aside() {
    let place = tempfile::tempdir().unwrap();
    let (directory, out) = (place.path().join("run"), place.path().join("out"));
    std::fs::create_dir(&directory).unwrap();
    let host = Host::start(&directory, "engine", false);
    let done = snapshot(&directory, &out);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(
        String::from_utf8_lossy(&done.stdout).contains("1 fragments"),
        "{done:?}"
    );
    let again = snapshot(&directory, &out);
    assert_eq!(
        again.status.code(),
        Some(2),
        "what is there already is not written over: {again:?}"
    );
    host.end();
    let status = run(&["status", "--json"], &out);
    assert!(status.stdout.contains("engine"), "{}", status.stdout);
}

/// Spans that are open at a snapshot do not make a process a dead one, whatever becomes of it later.
#[test]
fn issue_47_who_runs_at_a_snapshot_is_running_in_it() {
    let place = tempfile::tempdir().unwrap();
    let (directory, out) = (place.path().join("run"), place.path().join("out"));
    std::fs::create_dir(&directory).unwrap();
    let engine = Host::start_with(&directory, "engine", &[(OPEN, "1")]);
    Host::start_with(&directory, "worker", &[(OPEN, "1")]).kill();
    let done = snapshot(&directory, &out);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    engine.kill();
    let status = run(&["status", "--json"], &out).stdout;
    let status: Value = serde_json::from_str(&status).unwrap();
    let state = |nth: usize| &status["processes"][nth]["state"];
    assert_eq!((state(0), state(1)), (&"running".into(), &"killed".into()));
    let table = run(&["status"], &out).stdout;
    assert!(
        table.contains("still running when this snapshot was taken: engine (pid "),
        "{table}"
    );
    let mut options = trace_merge::Options::new([out.clone()]);
    options.output = trace_merge::Output::File(out.join("t.json"));
    let merged = trace_merge::merge(&options).unwrap();
    assert_eq!(status["events"].as_u64(), Some(merged.events.total));
    let ends: Vec<_> = merged
        .processes
        .iter()
        .map(|process| (process.was_running, process.end))
        .collect();
    assert_eq!(ends, [(true, None), (false, Some("killed"))]);
    let text = merged.text();
    assert!(text.contains(", still running at the snapshot\n"), "{text}");
    let report = run(&["report"], &out).stdout;
    assert!(
        report.contains("1 process was still running when it was taken"),
        "{report}"
    );
    let watched = run(&["watch", "--once"], &out).stdout;
    assert!(
        watched.contains("was still running when this snapshot was taken"),
        "{watched}"
    );
    assert!(
        watched.contains("1 of 2 processes alive, 1 died"),
        "{watched}"
    );
}
