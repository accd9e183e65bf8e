//! `status`, on healthy and on broken runs.

use crate::host::{Host, OPEN, SPANS};
use crate::{Finished, command, run};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

/// The table with `#` for every number, B for every unit of bytes, RUN for the run's id, and single spaces.
fn table(directory: &Path) -> String {
    let said = run(&["status"], directory);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    let mut text = String::new();
    for line in said.stdout.lines() {
        let words = line.split_whitespace().map(|word| match word {
            _ if word.len() == 24 && word.starts_with("20") => "RUN".to_owned(),
            _ if word.starts_with(|first: char| first.is_ascii_digit()) => "#".to_owned(),
            _ if word.starts_with('[') => "[#].".to_owned(),
            "kB" | "MB" => "B".to_owned(),
            "span." => "spans.".to_owned(), // one, if the kill comes between two spans of its loop
            _ => word.to_owned(),
        });
        text += &words.collect::<Vec<_>>().join(" ");
        text.push('\n');
    }
    text
}

fn json(directory: &Path) -> Value {
    let said = run(&["status", "--json"], directory);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    assert_eq!(said.stdout.lines().count(), 1);
    serde_json::from_str(&said.stdout).unwrap()
}

#[test]
fn a_healthy_run() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let _main = Host::start(directory, "engine-core", false);
    let other = Host::start(directory, "worker-0", true);
    assert_eq!(
        table(directory),
        "\
run RUN in DIR
began # s ago
recorded # events, # lost, # B
alive # of #

PROCESS PID STATE LEVEL FILES EVENTS SIZE LAST EVENT LOST DEVICE
engine-core # alive e2e,kernel # # # B # s ago - -
worker-0 # alive off # # # B # s ago - -
"
    );
    let status = json(directory);
    let [main, worker] = [&status["processes"][0], &status["processes"][1]];
    assert_eq!(
        (&main["name"], &main["main"]),
        (&"engine-core".into(), &true.into())
    );
    assert!(main["events"].as_u64().unwrap() >= SPANS);
    assert!(main["last_event_age_ns"].as_u64().unwrap() < 10_000_000_000);
    assert_eq!(
        (&worker["events"], &worker["pid"]),
        (&2.into(), &other.pid().into()),
        "its name, and that it is switched off"
    );
    assert_eq!(worker["levels"], Value::Array(Vec::new()));
    other.end();
    assert_eq!(json(directory)["processes"][1]["state"], "ended");
}

#[test]
fn a_killed_process_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let _main = Host::start(directory, "engine-core", false);
    Host::start_with(directory, "worker-0", &[(OPEN, "1")]).kill();
    // Paused, it had nothing open.
    Host::start(directory, "worker-1", true).kill();
    assert_eq!(
        table(directory),
        "\
run RUN in DIR
began # s ago
recorded # events, # lost, # B
alive # of #

PROCESS PID STATE LEVEL FILES EVENTS SIZE LAST EVENT LOST DEVICE
engine-core # alive e2e,kernel # # # B # s ago - -
worker-0 # killed e2e,kernel # # # B # s ago - -
worker-1 # silent off # # # B # s ago - -

killed: worker-0 (pid # in # open spans. `trace-merge DIR` shows the spans they died in

ended without closing its recording, with no span open (_exit, or a signal between two spans): worker-1 (pid #
"
    );
    let status = json(directory);
    let states = |status: &Value| [1, 2].map(|nth| status["processes"][nth]["state"].clone());
    assert_eq!(states(&status), ["killed", "silent"]);
    // A merge settles what they left, and takes their rings away.
    merged(directory, true);
    assert_eq!(states(&json(directory)), ["killed", "silent"]);
}

fn merged(directory: &Path, settle: bool) -> trace_merge::Report {
    let mut options = trace_merge::Options::new([directory.to_owned()]);
    options.output = trace_merge::Output::File(directory.join("t.json"));
    options.settle = settle;
    trace_merge::merge(&options).unwrap()
}

#[test]
fn issue_19_losses_that_only_the_ring_tells_are_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    Host::lossy(directory);
    let status = json(directory);
    let report = merged(directory, false);
    assert!(report.losses.events > 0, "{report:?}");
    assert_eq!(status["lost"].as_u64(), Some(report.losses.events));
    assert_eq!(status["events"].as_u64(), Some(report.events.total));
    assert_eq!(
        status["processes"][0]["lost"]["disk_bound"].as_u64(),
        Some(report.losses.events)
    );
    let doctor = run(&["doctor"], directory).stdout;
    let words: Vec<&str> = doctor.split_whitespace().collect();
    let said = words.join(" ").replace(',', "");
    let lost = format!("{} events by disk_bound", report.losses.events);
    assert!(said.contains(&lost), "{doctor}");
}

#[test]
fn a_directory_without_a_run_says_what_was_expected() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let refused = |text: &str| Finished {
        code: Some(2),
        stdout: String::new(),
        stderr: format!("sa-profile: {text}\n"),
    };
    let empty = "DIR: expected a run directory (fragments/trace.*.jsonl), found no fragment";
    assert_eq!(run(&["status"], directory), refused(empty));
    fs::write(directory.join("notes.txt"), "hello\n").unwrap();
    fs::create_dir(directory.join("fragments")).unwrap();
    assert_eq!(run(&["status"], directory), refused(empty));
    fs::write(
        directory.join("fragments/trace.7.jsonl"),
        "{\"ph\":\"X\"}\n",
    )
    .unwrap();
    let foreign = "DIR: expected fragments of sa-recorder, found 1 without its header";
    assert_eq!(run(&["status"], directory), refused(foreign));
    for (path, found) in [("absent", "nothing"), ("notes.txt", "a file")] {
        let path = directory.join(path);
        let text = format!("DIR: expected a run directory, found {found}");
        assert_eq!(run(&["status"], &path), refused(&text));
    }
}

#[test]
fn a_watched_status_is_told_again_and_again() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let _host = Host::start(directory, "a", false);
    let mut watch = command(&["status", "--json", "--watch"])
        .arg(directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let events = |line: String| -> u64 {
        let status: Value = serde_json::from_str(&line).unwrap();
        status["events"].as_u64().unwrap()
    };
    let seen: Vec<u64> = lines.take(3).map(|line| events(line.unwrap())).collect();
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert!(seen.is_sorted() && seen[0] < seen[2], "{seen:?}");
}
