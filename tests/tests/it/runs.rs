//! Runs: which process is main, which processes join a run, and what cleaning up moves or removes.

use crate::{host, script};
use e2e::host_support::{
    HostRecording, Live, Merged, previous_runs, ring_files, scratch, segments,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use trace_merge::Runs;

/// Runs a host to its end in a new run. Returns its stderr and the run id.
fn run(dir: &Path, label: &str, old_runs: &str) -> (String, String) {
    let host = host(dir, &["spans", label, "10"]);
    let said = host.variable("SA_PROFILE_OLD_RUNS", old_runs).run().stderr;
    (said, HostRecording::in_dir(dir).run())
}

fn run_id(live: &mut Live) -> String {
    live.who()["run"].as_str().unwrap().to_owned()
}

#[test]
fn a_restart_after_a_kill_keeps_the_crashed_run_in_previous_with_all_its_segments() {
    let dir = scratch();
    let host = host(dir.path(), &["killed", "crashed", "200000"]);
    let _killed = host.variable("SA_PROFILE_MAX_MB", "4").run().was_killed();
    assert!(segments(dir.path()).len() > 2 && ring_files(dir.path()).len() == 1);
    let crashed_run = HostRecording::in_dir(dir.path()).run();
    let _restarted = run(dir.path(), "restarted", "");
    assert_eq!(previous_runs(dir.path()), [crashed_run]);
    let fragments = dir.path().join("fragments");
    assert_eq!(ring_files(&fragments), Vec::<PathBuf>::new());
    let crashed = HostRecording::in_previous(dir.path());
    crashed.assert_accounted(200_000);
    crashed.assert_merged(&Merged::select(dir.path(), Runs::Previous));
    HostRecording::in_dir(dir.path()).assert_exactly(&[("restarted", 10)]);
    for (runs, expected) in [
        (Runs::Previous, (crashed.recorded(), 0)),
        (Runs::All, (crashed.recorded(), 10)),
        (Runs::Newest, (0, 10)),
    ] {
        let merged = Merged::select(dir.path(), runs);
        let found = (merged.count("crashed"), merged.count("restarted"));
        assert_eq!(found, expected);
    }
    assert_eq!(ring_files(dir.path()), Vec::<PathBuf>::new());
}

#[test]
fn issue_19_cleaning_keeps_the_newest_runs_and_names_those_that_it_removes() {
    for (asked, kept) in [("0", 0), ("2", 2), ("", 20)] {
        let dir = scratch();
        let runs = (0..kept + 4).map(|_| run(dir.path(), "work", asked));
        let (said, runs): (String, Vec<String>) = runs.unzip();
        let mut expected = runs[3..kept + 3].to_vec();
        expected.sort();
        assert_eq!(previous_runs(dir.path()), expected, "{asked}");
        HostRecording::in_dir(dir.path()).assert_exactly(&[("work", 10)]);
        // The removal is only reported the first time.
        let is_said = said.contains("removed 1 earlier run") && said.lines().count() == 1;
        assert!(
            is_said && said.contains(&format!("{}: 10 events", runs[0])),
            "{said}"
        );
        let removed = fs::read_to_string(dir.path().join("removed")).unwrap();
        let removed: Value = serde_json::from_str(&removed).unwrap();
        let listed = removed["runs"].as_array().unwrap().iter().map(|run| {
            let name = run["run"].as_str().unwrap().to_owned();
            (name, run["events"].as_u64(), run["estimated"] == false)
        });
        let named = runs[..3].iter().map(|name| (name.clone(), Some(10), true));
        assert!(listed.eq(named), "{asked}: {removed}");
        let text = Merged::newest(dir.path()).words();
        let names_them = text.contains("3 earlier runs with 30 events") && text.contains(&runs[2]);
        assert!(names_them, "{text}");
    }
}

#[test]
fn a_run_lasts_as_long_as_one_of_its_workers() {
    let dir = scratch();
    let mut main = script(dir.path());
    main.ask("spans main 10");
    let dead = run_id(&mut main);
    let mut worker = script(dir.path());
    worker.ask("spans worker 10");
    let main_pid = main.kill().to_string();
    let late = |label: &str| {
        let host = host(dir.path(), &["spans", label, "10"]);
        let host = host.variable("SA_PROFILE_RUN", &dead);
        host.variable("SA_PROFILE_MAIN_PID", &main_pid).run()
    };
    let _late = late("late").quiet();
    assert_eq!(previous_runs(dir.path()), Vec::<String>::new());
    let found = HostRecording::in_dir(dir.path());
    assert_eq!(found.run(), dead);
    found.assert_exactly(&[("late", 10), ("main", 10), ("worker", 10)]);
    // A process that is not a worker of this run starts another one. The live worker's files stay in place.
    let mut next = script(dir.path());
    assert_eq!(next.who()["main"], true);
    let _next = next.end().quiet();
    worker.ask("spans worker-later 10");
    let fragment = PathBuf::from(worker.who()["fragment"].as_str().unwrap());
    assert!(fragment.exists(), "a live process's fragment is gone");
    worker.kill();
    let line = late("too-late");
    assert!(line.one_line().contains(&dead));
    assert!(previous_runs(dir.path()).contains(&dead));
    let old = HostRecording::in_dir(&dir.path().join("previous").join(&dead));
    let labels = ["late", "main", "worker", "worker-later"];
    old.assert_exactly(&labels.map(|label| (label, 10)));
}

#[test]
fn a_child_that_holds_a_dead_parents_locks_prevents_no_new_main() {
    let dir = scratch();
    let mut parent = script(dir.path());
    parent.ask("spans parent 1000");
    let child = parent.ask("fork raw beside, sleep 120000");
    let dead_run = run_id(&mut parent);
    parent.kill();
    let mut next = script(dir.path());
    let state = next.who();
    next.ask("spans next 10");
    let _next = next.end().quiet();
    let _killed = Command::new("kill").args(["-KILL", &child]).status();
    assert_eq!(state["main"], true, "a sleeping child's lock prevents it");
    assert_ne!(state["run"], dead_run.as_str());
    assert_eq!(previous_runs(dir.path()), [dead_run]);
    HostRecording::in_previous(dir.path()).assert_exactly(&[("parent", 1000)]);
    HostRecording::in_dir(dir.path()).assert_exactly(&[("next", 10)]);
}

#[test]
fn stale_variables_are_ignored_with_one_warning() {
    let dir = scratch();
    // This process is alive but not an ancestor of the host.
    let mut stranger = Command::new("sleep");
    let mut stranger = stranger.arg("60").stdout(Stdio::null()).spawn().unwrap();
    let outcome = host(dir.path(), &["spans", "work", "10"])
        .variable("SA_PROFILE_MAIN_PID", stranger.id().to_string())
        .variable("SA_PROFILE_RUN", "run-of-yesterday")
        .run();
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    let line = outcome.one_line();
    let names_it = line.contains("SA_PROFILE_RUN") && line.contains("run-of-yesterday");
    assert!(names_it, "{line}");
    let found = HostRecording::in_dir(dir.path());
    found.assert_exactly(&[("work", 10)]);
    assert_ne!(found.run(), "run-of-yesterday");
    assert_eq!(found.headers[0]["main"], true);
}

#[test]
fn processes_that_start_during_cleaning_agree_on_one_main() {
    let dir = scratch();
    let old = host(dir.path(), &["killed", "old", "100"]);
    let _killed = old.run().was_killed();
    let start = || host(dir.path(), &["--lazy", "script"]).start();
    let mut hosts: Vec<Live> = (0..12).map(|_| start()).collect();
    for host in &mut hosts {
        host.send("init, who");
    }
    let states: Vec<Value> = (hosts.iter_mut())
        .map(|host| serde_json::from_str(&host.answer()).unwrap())
        .collect();
    let runs: BTreeSet<String> = states
        .iter()
        .map(|state| state["run"].to_string())
        .collect();
    let mains = states.iter().filter(|state| state["main"] == true).count();
    assert_eq!((runs.len(), mains), (1, 1), "{states:?}");
    for (number, mut host) in hosts.into_iter().enumerate() {
        host.ask(&format!("spans host-{number} 100"));
        drop(host.end().quiet());
    }
    let found = HostRecording::in_dir(dir.path());
    assert_eq!((found.recorded(), found.lost), (1200, 0));
    HostRecording::in_previous(dir.path()).assert_exactly(&[("old", 100)]);
}
