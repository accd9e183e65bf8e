//! Tests `sa-profile report` with runs that are live, were killed, or lost events.

use crate::program::Ground;
use serde_json::Value;
use std::fs;

/// Returns the number of calls of all names on threads.
fn calls(report: &Value) -> u64 {
    let names = report["names"].as_array().unwrap().iter();
    names.map(|name| name["ncall"].as_u64().unwrap()).sum()
}

#[test]
fn a_live_run_has_a_report_that_grows() {
    let ground = Ground::new();
    let host = ground.host("engine");
    let json = || ground.json(&["report", "--json", "out"]);
    let first = json();
    assert_eq!(first["recorded"]["processes"][0]["name"], "engine");
    assert_eq!(first["recorded"]["processes"][0]["end"], Value::Null);
    host.end();
    let last = json();
    assert!(calls(&last) >= calls(&first) && calls(&last) > 0);
    let files = || {
        let files = fs::read_dir(ground.path("out/fragments")).unwrap();
        let mut files: Vec<_> = files.map(|entry| entry.unwrap().file_name()).collect();
        files.sort();
        files
    };
    let before = files();
    json();
    assert_eq!(files(), before, "a report leaves the run as it is");
}

#[test]
fn who_was_killed_and_what_is_lost_comes_first() {
    let ground = Ground::new();
    ground.lossy_host();
    let report = ground.json(&["report", "--json", "out"]);
    let lost = report["recorded"]["lost_events"].as_u64().unwrap();
    assert!(lost > 0);
    // A process that was killed within a span is also reported as a crash, which then comes first.
    let findings = report["findings"].as_array().unwrap();
    let mut findings = findings.iter().filter(|finding| finding["rule"] != "crash");
    assert_eq!(findings.next().unwrap()["rule"], "losses");
    let screen = ground.run(&["report", "--all", "out"]).stdout;
    let line = |name| screen.lines().position(|line| line.starts_with(name));
    assert!(line("missing") < line("names"), "{screen}");
}
