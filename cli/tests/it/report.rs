//! `sa-profile report` of runs that go on, were killed, or lost events.

use crate::host::Host;
use crate::{command, run};
use serde_json::Value;
use std::path::Path;

fn json(directory: &Path) -> Value {
    let said = run(&["report", "--json"], directory);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&said.stdout).unwrap()
}

/// The calls of all names on threads.
fn calls(report: &Value) -> u64 {
    let names = report["names"].as_array().unwrap().iter();
    names.map(|name| name["ncall"].as_u64().unwrap()).sum()
}

#[test]
fn a_live_run_has_a_report_that_grows() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let host = Host::start(directory, "engine", false);
    let first = json(directory);
    assert_eq!(first["recorded"]["processes"][0]["name"], "engine");
    assert_eq!(first["recorded"]["processes"][0]["end"], Value::Null);
    host.end();
    let last = json(directory);
    assert!(calls(&last) >= calls(&first) && calls(&last) > 0);
    let files = || {
        let mut files: Vec<_> = std::fs::read_dir(directory.join("fragments"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        files.sort();
        files
    };
    let before = files();
    json(directory);
    assert_eq!(files(), before, "a report leaves the run as it is");
}

#[test]
fn who_was_killed_and_what_is_lost_comes_first() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    Host::lossy(directory);
    let report = json(directory);
    let lost = report["recorded"]["lost_events"].as_u64().unwrap();
    assert!(lost > 0);
    // A kill within a span is a crash as well, which then comes first.
    let findings = report["findings"].as_array().unwrap();
    let of_time = |finding: &&Value| finding["rule"] != "crash";
    let first = findings.iter().find(of_time).unwrap();
    assert_eq!(first["rule"], "losses");
    let screen = run(&["report"], directory).stdout;
    let missing = screen.lines().position(|line| line.starts_with("missing"));
    let names = screen.lines().position(|line| line.starts_with("names"));
    assert!(missing < names, "{screen}");
    let page = directory.join("page.html");
    let option = format!("--html={}", page.display());
    let done = command(&["report", &option])
        .arg(directory)
        .output()
        .unwrap();
    let words = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success() && done.stdout.is_empty(), "{words}");
    assert!(
        words.contains("page.html (") && words.ends_with("open it in a browser\n"),
        "{words}"
    );
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.contains(&format!("\"lost_events\":{lost}")));
    assert!(!directory.join("page.html.tmp").exists());
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    Host::start(directory, "engine", false).end();
    let option = format!("--html={}/none/page.html", directory.display());
    let said = run(&["report", &option], directory);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("page.html: No such file"), "{said:?}");
}
