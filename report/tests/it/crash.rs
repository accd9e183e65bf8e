//! Crashed runs: which process died first, in what, and what the report says of it.

use crate::reports::{has_words, report};
use format_oracle::writer::{Fragment, Process};
use serde_json::json;
use tempfile::TempDir;
use trace_merge::{Exit, Options, Output};
use trace_report::{Crash, RunReport, screen};

/// Spans that were open when a process died: when each began, its name and its args.
type Open<'a> = &'a [(u64, &'a str, &'a str)];

/// Writes what a process left that did not close its recording, as a merge settles it. Its words are pid, name, when it stopped recording, and the signal or
/// code that it ended with, if that is known.
fn dead(folder: &TempDir, process: &str, open: Open<'_>) {
    let words: Vec<&str> = process.split(' ').collect();
    let [pid, name, last_ns, ref exit @ ..] = words[..] else {
        panic!("{process}")
    };
    let last_ns: u64 = last_ns.parse().unwrap();
    let process = Process::new(pid.parse().unwrap());
    let on = process.main_thread();
    let mut fragment = process.fragment();
    fragment.line(&process.anchor(1_000_000));
    fragment.line(&on.metadata("process_name", &format!("\"name\":\"{name}\"")));
    fragment.line(&on.span(last_ns - 500_000, 500_000, "work", ""));
    for (start_ns, name, args) in open {
        let ts = *start_ns as f64 / 1e3;
        fragment.line(&format!(
            r#"{{"ph":"B","pid":{pid},"tid":{pid},"ts":{ts:.3},"name":"{name}","cat":"worker","args":{{"unfinished":true{args}}}}}"#
        ));
    }
    let mut end = json!({ "monotonic_ns": last_ns, "open": open.len() });
    if let Some(exit) = exit.first() {
        let code = exit.parse().map(Exit::Code);
        end["exit"] = json!(code.unwrap_or_else(|_| Exit::Signal((*exit).to_owned())));
    }
    let end = end.to_string();
    fragment.line(&on.metadata("sa_end", end.trim_matches(['{', '}'])));
    fragment.write_here(&folder.path().join("fragments"));
}

fn empty_run() -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("fragments")).unwrap();
    folder
}

/// A worker died of SIGKILL in step 37. The engine that waited for it was killed later, and one process ended by itself with a span open.
fn crashed() -> TempDir {
    let folder = empty_run();
    let step = r#","step":37,"request_ids":["r1","r2"]"#;
    let open: Open<'_> = &[
        (6_000_000, "WorkerProcess.execute_step", step),
        (6_500_000, "qkv_proj", ""),
    ];
    let waits: Open<'_> = &[(6_100_000, "scheduler.wait_worker_output", "")];
    dead(&folder, "43 worker-0 6200000 SIGKILL", open);
    dead(&folder, "42 engine-core 9000000", waits);
    dead(&folder, "41 api 2000000 1", waits);
    folder
}

/// Returns the crash, and the name of the process that died first.
fn first_dead(report: &RunReport) -> (&Crash, String) {
    let crash = report.crash.as_ref().unwrap();
    (crash, report.recorded.process_name(crash.process))
}

const FIRST: &str = "worker-0 (pid 43) died first, by SIGKILL, at 0.005 s, in step 37, in qkv_proj, with 2 requests (r1, r2); then engine-core (pid 42) 0.003 s later";

#[test]
fn issue_47_the_first_finding_of_a_crash_says_who_died_first_and_in_what() {
    let folder = crashed();
    let found = report(folder.path());
    let (crash, name) = first_dead(&found);
    assert_eq!(name, "worker-0");
    assert_eq!(crash.step.as_deref(), Some("37"));
    assert_eq!(crash.request_ids, ["r1", "r2"]);
    let followed = crash.followed_by.iter().map(|of| of.after_ns);
    assert_eq!(followed.collect::<Vec<_>>(), [Some(2_500_000)]);
    let first = &found.findings[0];
    assert_eq!((first.rule, &*first.evidence), ("crash", FIRST));
    let words = [
        "worker-0 (pid 43) was killed by SIGKILL, in 2 open spans\n",
        "engine-core (pid 42) was killed, in 1 open span\n",
        "api (pid 41) ended by itself with exit code 1, in 1 open span\n",
    ];
    has_words(&screen::text(&found), &words);
}

/// `sa-profile run` names the trace for the report: its labels say who was killed.
#[test]
fn issue_47_the_trace_of_a_crash_says_the_same() {
    let folder = crashed();
    let trace = folder.path().join("trace.json");
    let mut options = Options::new([folder.path().to_owned()]);
    options.output = Output::File(trace.clone());
    let merged = trace_merge::merge(&options).unwrap();
    let words = "killed: first worker-0 (pid 43), by SIGKILL, in 2 open spans; then engine-core (pid 42), in 1 open span\n";
    has_words(&merged.text(), &[words]);
    let first = &report(&trace).findings[0];
    assert_eq!((first.rule, &*first.evidence), ("crash", FIRST));
}

/// A worker that is killed between two steps leaves no span open. Nobody knows its signal, but it stopped recording before the engine did.
#[test]
fn issue_47_a_process_that_was_killed_between_two_spans_is_named() {
    let folder = empty_run();
    let waits = (1_100_000, "scheduler.wait_worker_output", "");
    dead(&folder, "42 engine-core 20000000000", &[waits]);
    dead(&folder, "43 worker-0 18500000000", &[]);
    dead(&folder, "44 helper 9000000000", &[]);
    dead(&folder, "45 api 19000000000 0", &[]);
    let found = report(folder.path());
    let evidence = &found.findings[0].evidence;
    let words = "; worker-0 (pid 43) may have died before: 1.500 s earlier it stopped recording, with no span open";
    assert!(
        evidence.starts_with("engine-core (pid 42) died first"),
        "{evidence}"
    );
    assert!(evidence.ends_with(words), "{evidence}");
}

/// A run that Ctrl-C ends has not crashed.
#[test]
fn a_signal_that_ends_programs_in_good_order_is_no_crash() {
    let folder = empty_run();
    dead(
        &folder,
        "43 worker-0 6200000 SIGINT",
        &[(6_000_000, "step", "")],
    );
    let found = report(folder.path());
    assert!(found.crash.is_none() && found.findings.is_empty());
    has_words(
        &screen::text(&found),
        &["was killed by SIGINT, in 1 open span"],
    );
}

/// SIGTERM comes last in the list whenever it ended a process, here before the one that crashed.
#[test]
fn no_process_ended_a_negative_time_later() {
    let folder = empty_run();
    dead(
        &folder,
        "42 api 2000000 SIGTERM",
        &[(1_100_000, "step", "")],
    );
    dead(
        &folder,
        "43 engine 9000000 SIGKILL",
        &[(1_100_000, "step", "")],
    );
    let found = report(folder.path());
    let (crash, name) = first_dead(&found);
    assert_eq!(name, "engine");
    let followed = crash.followed_by.iter().map(|of| of.after_ns);
    assert_eq!(followed.collect::<Vec<_>>(), [None]);
    let evidence = &found.findings[0].evidence;
    assert!(evidence.ends_with("; then api (pid 42)"), "{evidence}");
}

/// A newer version may have written how a process ended.
#[test]
fn a_process_of_an_unknown_end_was_killed_where_spans_are_open() {
    let folder = crashed();
    let path = folder.path().join("fragments/trace.43.jsonl");
    let known = std::fs::read_to_string(&path).unwrap();
    let unknown = known.replace(r#""exit":{"signal""#, r#""exit":{"core_dump""#);
    assert_ne!(unknown, known);
    std::fs::write(&path, unknown).unwrap();
    let found = report(folder.path());
    let (crash, name) = first_dead(&found);
    assert_eq!((&*name, &crash.exit), ("worker-0", &None));
}

#[test]
fn issue_47_processes_that_recorded_nothing_are_missing() {
    let process = Process::new(41);
    let on = process.main_thread();
    let mut fragment = process.fragment();
    fragment.line(&process.anchor(1_000_000));
    fragment.line(&on.span(2_000_000, 500_000, "work", ""));
    let folder = empty_run();
    let text = |fragment: &Fragment| {
        fragment.write_here(&folder.path().join("fragments"));
        screen::text(&report(folder.path()))
    };
    has_words(&text(&fragment), &["missing    no known losses\n"]);
    let loss = r#"{"ph":"i","pid":41,"tid":41,"ts":3000.000,"s":"p","name":"sa_loss","cat":"sa_profile","args":{"cause":"children_refused","events":0,"processes":6,"error":13}}"#;
    fragment.line(loss);
    has_words(
        &text(&fragment),
        &["missing    6 processes recorded nothing\n"],
    );
}
