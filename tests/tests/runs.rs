//! Runs: who is main, who joins, and what the cleaning moves where.

use e2e::host_support::{Found, Host, Live, Merged, Outcome, previous_runs, scratch};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

const HOST: &str = env!("CARGO_BIN_EXE_host");

fn spans(dir: &Path, label: &str, count: u64) -> Outcome {
    let count = count.to_string();
    Host::new(HOST)
        .arguments(&["spans", label, &count])
        .recorded_in(dir)
        .run()
}

fn killed(dir: &Path, label: &str, count: u64) -> Outcome {
    let count = count.to_string();
    Host::new(HOST)
        .arguments(&["killed", label, &count])
        .recorded_in(dir)
        .run()
        .was_killed()
}

fn script(dir: &Path) -> Live {
    Host::new(HOST)
        .arguments(&["script"])
        .recorded_in(dir)
        .start()
}

fn fragments(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir.join("fragments")).expect("the fragments folder");
    entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_second_main_on_a_live_directory_joins_and_cleans_nothing() {
    let dir = scratch();
    let mut first = script(dir.path());
    first.ask("spans first 100");
    let before = fragments(dir.path());
    let mut second = script(dir.path());
    let (first_says, second_says) = (first.who(), second.who());
    assert_eq!(
        (&first_says["main"], &second_says["main"]),
        (&Value::Bool(true), &Value::Bool(false))
    );
    assert_eq!(first_says["run"], second_says["run"]);
    second.ask("spans second 50");
    let _second = second.end().quiet();
    assert!(
        before.is_subset(&fragments(dir.path())),
        "cleaned a live run"
    );
    assert_eq!(previous_runs(dir.path()), Vec::<String>::new());
    first.ask("spans later 100");
    let _first = first.end().quiet();
    Found::in_dir(dir.path()).assert_exactly(&[("first", 100), ("later", 100), ("second", 50)]);
}

#[test]
fn a_restart_after_a_kill_keeps_the_crashed_run_in_previous() {
    let dir = scratch();
    killed(dir.path(), "crashed", 5000);
    let crashed_run = Found::in_dir(dir.path()).run();
    let _restarted = spans(dir.path(), "restarted", 100).quiet();
    assert_eq!(previous_runs(dir.path()), [crashed_run]);
    Found::in_previous(dir.path()).assert_exactly(&[("crashed", 5000)]);
    Found::in_dir(dir.path()).assert_exactly(&[("restarted", 100)]);
    let merged = Merged::previous(dir.path());
    assert_eq!(
        (merged.count("crashed"), merged.count("restarted")),
        (5000, 0)
    );
    let merged = Merged::all_runs(dir.path());
    assert_eq!(
        (merged.count("crashed"), merged.count("restarted")),
        (5000, 100)
    );
    let merged = Merged::newest(dir.path());
    assert_eq!(
        (merged.count("crashed"), merged.count("restarted")),
        (0, 100)
    );
}

#[test]
fn the_cleaning_keeps_as_many_old_runs_as_asked_and_the_newest_ones() {
    for (asked, kept) in [(Some("0"), 0), (None, 3), (Some("2"), 2)] {
        let dir = scratch();
        let (mut runs, mut said) = (Vec::new(), String::new());
        for round in 0..4 {
            let mut host = Host::new(HOST)
                .arguments(&["spans", &format!("round-{round}"), "10"])
                .recorded_in(dir.path());
            if let Some(asked) = asked {
                host = host.variable("SA_PROFILE_OLD_RUNS", asked);
            }
            let outcome = host.run();
            said += &outcome.stderr;
            runs.push(Found::in_dir(dir.path()).run());
        }
        // It is said once that runs are removed.
        let lines = said
            .lines()
            .filter(|line| line.contains("removed 1 earlier run"));
        assert_eq!(
            (lines.count(), said.lines().count()),
            match kept {
                3 => (0, 0),
                _ => (1, 1),
            },
            "{said}"
        );
        let mut expected = runs[3 - kept..3].to_vec();
        expected.sort();
        assert_eq!(
            previous_runs(dir.path()),
            expected,
            "SA_PROFILE_OLD_RUNS={asked:?}"
        );
        Found::in_dir(dir.path()).assert_exactly(&[("round-3", 10)]);
    }
}

#[test]
fn issue_19_runs_that_are_removed_are_named() {
    let (dir, mut runs, mut said) = (scratch(), Vec::new(), String::new());
    for _ in 0..24 {
        let host = Host::new(HOST).arguments(&["spans", "work", "7"]);
        said += &host.recorded_in(dir.path()).run().stderr;
        runs.push(Found::in_dir(dir.path()).run());
    }
    assert_eq!(previous_runs(dir.path()).len(), 20);
    let names = [&runs[0], &runs[1], &runs[2]];
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(&format!("{}: 7 events", names[0])), "{said}");
    let removed = fs::read_to_string(dir.path().join("removed")).unwrap();
    let removed: serde_json::Value = serde_json::from_str(&removed).unwrap();
    let told: Vec<_> = removed["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| {
            (
                run["run"].as_str().unwrap().to_owned(),
                run["events"].as_u64(),
                run["estimated"] == false,
            )
        })
        .collect();
    assert_eq!(told, names.map(|name| (name.clone(), Some(7), true)));
    let report = trace_merge::merge(&trace_merge::Options::new([dir.path().to_owned()])).unwrap();
    let text = report.text();
    assert!(
        text.contains("3 earlier runs with 21 events") && text.contains(names[2].as_str()),
        "{text}"
    );
}

#[test]
fn of_two_crashed_runs_the_one_that_recorded_last_is_kept() {
    let dir = scratch();
    let mut main = script(dir.path());
    assert_eq!(main.who()["main"], true); // before the other starts, which else might come first
    let mut worker = script(dir.path());
    for (live, label) in [(&mut main, "main"), (&mut worker, "worker")] {
        live.ask(&format!("spans {label} 10"));
        live.ask("flush");
    }
    main.kill();
    let mut second = script(dir.path());
    assert_eq!(second.who()["main"], true);
    worker.kill();
    thread::sleep(Duration::from_millis(50)); // file times are as coarse as the kernel's tick
    second.ask("spans second 10");
    second.ask("flush");
    let run = second.who()["run"].as_str().map(str::to_owned);
    second.kill();
    let third = Host::new(HOST)
        .arguments(&["spans", "third", "10"])
        .recorded_in(dir.path())
        .variable("SA_PROFILE_OLD_RUNS", "1")
        .run();
    assert!(
        third.one_line().contains("removed 1 earlier run"),
        "{third:?}"
    );
    assert_eq!(previous_runs(dir.path()), [run.expect("a run id")]);
    Found::in_previous(dir.path()).assert_exactly(&[("second", 10)]);
}

#[test]
fn a_worker_that_outlives_its_main_is_not_moved_while_it_records() {
    let dir = scratch();
    let mut main = script(dir.path());
    main.ask("spans main 10");
    let mut worker = script(dir.path());
    worker.ask("spans worker 10");
    main.kill();
    let mut next = script(dir.path());
    next.ask("spans next 10");
    assert_eq!(next.who()["main"], true);
    worker.ask("spans worker-later 1000");
    let worker_fragment = PathBuf::from(worker.who()["fragment"].as_str().expect("a path"));
    assert!(
        worker_fragment.exists(),
        "a live process's fragment was taken away"
    );
    let _worker = worker.end().quiet();
    let _next = next.end().quiet();
    let mut found = Found::in_dir(dir.path());
    let previous = Found::in_previous(dir.path());
    found.work.extend(previous.work);
    found.assert_exactly(&[
        ("main", 10),
        ("next", 10),
        ("worker", 10),
        ("worker-later", 1000),
    ]);
}

#[test]
fn a_child_that_keeps_a_dead_parents_locks_keeps_nobody_from_being_main() {
    let dir = scratch();
    let mut parent = script(dir.path());
    parent.ask("spans parent 1000");
    let child = parent.ask("raw-fork");
    let dead_run = parent.who()["run"]
        .as_str()
        .map(str::to_owned)
        .expect("a run id");
    parent.kill();
    let mut next = script(dir.path());
    let says = next.who();
    next.ask("spans next 10");
    let _next = next.end().quiet();
    let _killed = Command::new("kill").args(["-KILL", &child]).status();
    assert_eq!(
        says["main"], true,
        "a sleeping child's lock keeps the directory"
    );
    assert_ne!(says["run"], dead_run.as_str());
    assert_eq!(previous_runs(dir.path()), [dead_run]);
    Found::in_previous(dir.path()).assert_exactly(&[("parent", 1000)]);
    Found::in_dir(dir.path()).assert_exactly(&[("next", 10)]);
}

#[test]
fn stale_variables_are_ignored_with_one_warning() {
    let dir = scratch();
    // A process that lives but is no ancestor of the host.
    let mut stranger = Command::new("sleep")
        .arg("60")
        .stdout(Stdio::null())
        .spawn()
        .expect("sleep starts");
    let outcome = Host::new(HOST)
        .arguments(&["spans", "work", "10"])
        .recorded_in(dir.path())
        .variable("SA_PROFILE_MAIN_PID", stranger.id().to_string())
        .variable("SA_PROFILE_RUN", "run-of-yesterday")
        .run();
    stranger.kill().expect("sleep is alive");
    stranger.wait().expect("sleep can be waited for");
    let line = outcome.one_line();
    assert!(
        line.contains("SA_PROFILE_RUN") && line.contains("run-of-yesterday"),
        "{line}"
    );
    let found = Found::in_dir(dir.path());
    found.assert_exactly(&[("work", 10)]);
    assert_ne!(found.run(), "run-of-yesterday");
    assert_eq!(found.headers[0]["main"], true);
}

#[test]
fn a_worker_joins_its_run_while_another_worker_of_it_lives() {
    let dir = scratch();
    let mut main = script(dir.path());
    main.ask("spans main 10");
    let run = main.who()["run"].as_str().map(str::to_owned);
    let run = run.expect("a run id");
    let mut worker = script(dir.path());
    worker.ask("spans worker 10");
    let main_pid = main.kill().to_string();
    let late = |label: &str| {
        Host::new(HOST)
            .arguments(&["spans", label, "10"])
            .recorded_in(dir.path())
            .variable("SA_PROFILE_RUN", &run)
            .variable("SA_PROFILE_MAIN_PID", &main_pid)
            .run()
    };
    let _late = late("late").quiet();
    assert_eq!(previous_runs(dir.path()), Vec::<String>::new());
    let found = Found::in_dir(dir.path());
    assert_eq!(found.run(), run);
    found.assert_exactly(&[("late", 10), ("main", 10), ("worker", 10)]);
    worker.kill();
    let line = late("too-late");
    assert!(line.one_line().contains(&run));
    assert_eq!(previous_runs(dir.path()), [run.as_str()]);
}

#[test]
fn a_launchers_run_id_groups_processes() {
    let dir = scratch();
    for label in ["one", "two"] {
        let host = Host::new(HOST)
            .arguments(&["spans", label, "10"])
            .recorded_in(dir.path());
        let _outcome = host
            .variable("SA_PROFILE_RUN", "job-17.rank_0")
            .run()
            .quiet();
    }
    let found = Found::in_dir(dir.path());
    assert_eq!(found.run(), "job-17.rank_0");
    found.assert_exactly(&[("one", 10), ("two", 10)]);
}

#[test]
fn a_process_that_starts_while_the_directory_is_cleaned_is_not_lost() {
    let dir = scratch();
    killed(dir.path(), "old", 100);
    let mut hosts: Vec<Live> = (0..8)
        .map(|_| {
            Host::new(HOST)
                .arguments(&["--gate", "spans", "new", "50"])
                .recorded_in(dir.path())
                .variable("SA_PROFILE_OLD_RUNS", "9") // one may end before the next begins, and so be another run
                .start()
        })
        .collect();
    for host in &mut hosts {
        host.tell("go");
    }
    for host in hosts {
        drop(host.end().quiet());
    }
    let mut all = Merged::all_runs(dir.path()).counts();
    assert_eq!(all.remove("new"), Some(400));
}

#[test]
fn of_processes_that_start_together_one_is_main_and_the_others_join_it() {
    let dir = scratch();
    let gate = ["--gate", "script"];
    let start = || {
        Host::new(HOST)
            .arguments(&gate)
            .recorded_in(dir.path())
            .start()
    };
    let mut hosts: Vec<Live> = (0..12).map(|_| start()).collect();
    for host in &mut hosts {
        host.tell("go");
    }
    let says: Vec<Value> = hosts.iter_mut().map(Live::who).collect();
    let runs: BTreeSet<String> = says.iter().map(|says| says["run"].to_string()).collect();
    let mains = says.iter().filter(|says| says["main"] == true).count();
    assert_eq!((runs.len(), mains), (1, 1), "{says:?}");
    for (number, mut host) in hosts.into_iter().enumerate() {
        host.ask(&format!("spans host-{number} 100"));
        drop(host.end().quiet());
    }
    let found = Found::in_dir(dir.path());
    assert_eq!((found.recorded(), found.lost), (1200, 0));
    assert_eq!(previous_runs(dir.path()), Vec::<String>::new());
}

#[test]
fn a_child_in_another_working_directory_finds_a_relative_directory() {
    for (variable, value, folder) in [
        ("SA_PROFILE_DIR", "here", "here"),
        ("SA_PROFILE_OUTPUT", "x.json", "x.json.fragments"),
        ("SA_PROFILE_LEVEL", "e2e", "profile_out"),
    ] {
        let dir = scratch();
        let elsewhere = dir.path().join("elsewhere");
        fs::create_dir(&elsewhere).expect("own directory");
        let _outcome = Host::new(HOST)
            .arguments(&["spawn-in", "elsewhere", "10"])
            .working_in(dir.path())
            .variable(variable, value)
            .run()
            .quiet();
        assert_eq!(fs::read_dir(&elsewhere).expect("it is there").count(), 0);
        Found::in_dir(&dir.path().join(folder)).assert_exactly(&[("child", 10), ("parent", 10)]);
    }
}
