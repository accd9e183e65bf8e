//! Tests `status` with healthy and with broken runs.

use crate::program::{Ended, Ground};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Variable with which a process starts with recording switched off.
const PAUSED: [(&str, &str); 1] = [("SA_PROFILE_START", "paused")];

fn json(ground: &Ground) -> Value {
    ground.json(&["status", "--json", "out"])
}

#[test]
fn a_healthy_run() {
    let ground = Ground::new();
    let _main = ground.host("engine-core");
    let other = ground.host_with(&["worker-0", "spans=1000"], &PAUSED);
    let status = json(&ground);
    let [main, worker] = [&status["processes"][0], &status["processes"][1]];
    assert_eq!(
        (&main["name"], &main["main"]),
        (&"engine-core".into(), &true.into())
    );
    assert!(main["events"].as_u64().unwrap() >= 1000);
    assert!(main["last_event_age_ns"].as_u64().unwrap() < 10_000_000_000);
    assert_eq!(
        (&worker["events"], &worker["pid"]),
        (&2.into(), &other.pid().into()),
        "its name, and that it is switched off"
    );
    assert_eq!(worker["levels"], Value::Array(Vec::new()));
    other.end();
    assert_eq!(json(&ground)["processes"][1]["state"], "ended");
}

#[test]
fn a_killed_process_is_named() {
    let ground = Ground::new();
    let _main = ground.host("engine-core");
    drop(ground.host_with(&["worker-0", "open"], &[]));
    // It had no open span while recording was paused.
    drop(ground.host_with(&["worker-1"], &PAUSED));
    let shown = ground.run(&["status", "out"]);
    assert_eq!(shown, Ended::done(shown.stdout.as_str()));
    let line = "\n\nended without closing its recording, with no span open (_exit, or a signal between two spans): worker-1 (pid ";
    assert!(shown.stdout.contains(line), "{shown:?}");
    let status = json(&ground);
    let states = |status: &Value| [1, 2].map(|nth| status["processes"][nth]["state"].clone());
    assert_eq!(states(&status), ["killed", "silent"]);
    // A merge settles their fragments and removes their rings.
    merged(&ground, true);
    assert_eq!(states(&json(&ground)), ["killed", "silent"]);
}

fn merged(ground: &Ground, settle: bool) -> trace_merge::Report {
    let options = trace_merge::Options {
        output: trace_merge::Output::File(ground.path("t.json")),
        settle,
        ..trace_merge::Options::new([ground.path("out")])
    };
    trace_merge::merge(&options).unwrap()
}

#[test]
fn issue_19_losses_that_only_the_ring_tells_are_counted() {
    let ground = Ground::new();
    ground.lossy_host();
    let status = json(&ground);
    let report = merged(&ground, false);
    assert!(report.losses.events > 0, "{report:?}");
    assert_eq!(status["lost"].as_u64(), Some(report.losses.events));
    assert_eq!(status["events"].as_u64(), Some(report.events.total));
    assert_eq!(
        status["processes"][0]["lost"]["disk_bound"].as_u64(),
        Some(report.losses.events)
    );
    let doctor = ground.run(&["doctor", "out"]).stdout;
    let words: Vec<&str> = doctor.split_whitespace().collect();
    let said = words.join(" ").replace(',', "");
    let lost = format!("{} events by disk_bound", report.losses.events);
    assert!(said.contains(&lost), "{doctor}");
}

#[test]
fn a_directory_without_a_run_says_what_was_expected() {
    let ground = Ground::new();
    let status = |directory: &str| ground.run(&["status", directory]);
    let empty = "out: expected a run directory (fragments/trace.*.jsonl), found no fragment";
    fs::create_dir(ground.path("out")).unwrap();
    assert_eq!(status("out"), Ended::refusal(empty));
    fs::write(ground.path("out/notes.txt"), "hello\n").unwrap();
    fs::create_dir(ground.path("out/fragments")).unwrap();
    assert_eq!(status("out"), Ended::refusal(empty));
    let fragment = ground.path("out/fragments/trace.7.jsonl");
    fs::write(fragment, "{\"ph\":\"X\"}\n").unwrap();
    let foreign = "out: expected fragments of sa-recorder, found 1 without its header";
    assert_eq!(status("out"), Ended::refusal(foreign));
    for (path, found) in [("absent", "nothing"), ("out/notes.txt", "a file")] {
        let text = format!("{path}: expected a run directory, found {found}");
        assert_eq!(status(path), Ended::refusal(&text));
    }
}

#[test]
fn a_watched_status_is_repeated() {
    let ground = Ground::new();
    let _host = ground.host("a");
    let mut watch = ground.command(&["status", "--json", "--watch", "out"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let events = |line: String| -> u64 {
        let status: Value = serde_json::from_str(&line).unwrap();
        status["events"].as_u64().unwrap()
    };
    let counts: Vec<u64> = lines.take(3).map(|line| events(line.unwrap())).collect();
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert!(counts.is_sorted() && counts[0] < counts[2], "{counts:?}");
}
