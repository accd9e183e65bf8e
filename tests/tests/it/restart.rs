//! Processes that end a recording and start another one.

use crate::{host, listening_script as script};
use e2e::chance::rounds;
use e2e::host_support::switch::{control, switch};
use e2e::host_support::{HostRecording, Live, Merged, previous_runs, scratch, status_kib};
use sa_format::Level;
use sa_format::control::SwitchCause;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;
use trace_merge::Runs;

fn start(live: &mut Live, dir: &Path) -> Value {
    let answer = live.ask(&format!("start {}", dir.display()));
    serde_json::from_str(&answer).unwrap_or_else(|_| panic!("no recording: {answer}"))
}

fn run_id(live: &mut Live) -> String {
    live.who()["run"].as_str().expect("an id").to_owned()
}

#[test]
fn threads_at_full_speed_lose_nothing_that_was_acknowledged() {
    let (threads, cycles) = (4, rounds(20, 60));
    let dir = scratch();
    let path = dir.path().display().to_string();
    let (thread_count, cycle_count) = (threads.to_string(), cycles.to_string());
    let arguments = ["restart-stress", &path, &thread_count, &cycle_count];
    let host = host(dir.path(), &arguments).deadline(Duration::from_secs(120));
    let outcome = host.run().quiet();
    let mut spans = BTreeSet::new();
    let mut all = 0;
    let acknowledged = outcome.stdout.lines().next().unwrap();
    let acknowledged: Vec<Vec<[u64; 2]>> = serde_json::from_str(acknowledged).unwrap();
    assert_eq!(acknowledged.len(), threads);
    for cycle in 0..cycles {
        let found = HostRecording::in_dir(&dir.path().join(cycle.to_string()));
        assert_eq!((&found.damage, found.lost), (&vec![], 0));
        let work = found.work.iter().map(|work| &work.args);
        let recorded: BTreeSet<_> = work.map(|args| (args.label.clone(), args.index)).collect();
        assert_eq!(recorded.len(), found.work.len(), "duplicated in {cycle}");
        for (label, index) in &recorded {
            let thread = label.split('.').next_back().expect("a thread");
            let is_new = spans.insert((thread.to_owned(), *index));
            assert!(is_new, "duplicated: {label} {index}");
        }
        for (thread, ranges) in acknowledged.iter().enumerate() {
            let [first, last] = ranges[cycle];
            for index in first.max(1)..=last {
                let expected = (format!("{cycle}.{thread}"), index);
                assert!(recorded.contains(&expected), "{expected:?} is missing");
                all += 1;
            }
        }
        // A thread may pause between reading the recording's number and recording its span, so a span may be late, but never early.
        let is_later = |label: &String| {
            let number = label.split('.').next().unwrap_or_default();
            number.parse::<usize>().is_ok_and(|number| number > cycle)
        };
        let later = found.counts().into_keys().find(is_later);
        assert_eq!(later, None, "in recording {cycle}");
    }
    println!("RESTART acknowledged={all} recorded={}", spans.len());
    assert!(all > cycles * 10_000 / 60, "{all}");
}

#[test]
fn open_spans_end_in_neither_recording() {
    let dir = scratch();
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    let mut host = script(&old);
    host.ask("process-name restarted, thread-name lead, open-all");
    start(&mut host, &new);
    host.ask("spans before-the-ends 5, end-all, spans after-the-ends 5");
    let _outcome = host.end().quiet();
    let unfinished = HostRecording::in_dir(&old).unfinished;
    let open = unfinished.iter().filter_map(|event| event["name"].as_str());
    let open: BTreeSet<&str> = open.collect();
    assert_eq!(open.len(), 10);
    let found = HostRecording::in_dir(&new);
    found.assert_exactly(&[("after-the-ends", 5), ("before-the-ends", 5)]);
    assert_eq!(found.unfinished, Vec::<Value>::new());
    let trace = Merged::newest(&new);
    assert!(open.iter().all(|name| trace.count_named(name) == 0));
    assert_eq!(trace.tracks_with("work"), ["lead"].into());
    assert!(trace.metadata_names("process_name").contains(&"restarted"));
}

/// Returns measures of a process: KiB of private and of shared memory, rings, mappings, descriptors, threads.
fn resources(pid: u32) -> [u64; 6] {
    let process = Path::new("/proc").join(pid.to_string());
    let maps = fs::read_to_string(process.join("maps")).unwrap();
    let rings = maps.lines().filter(|line| line.contains(".ring")).count();
    let entries = |name: &str| fs::read_dir(process.join(name)).unwrap().count() as u64;
    let kib = |key: &str| status_kib(pid, key);
    [
        kib("RssAnon:"),
        kib("RssShmem:") + kib("RssFile:"),
        rings as u64,
        maps.lines().count() as u64,
        entries("fd"),
        entries("task"),
    ]
}

#[test]
fn a_thousand_recordings_leak_nothing() {
    let dir = scratch();
    let cycles = rounds(100, 1000);
    let host = host(dir.path(), &["script"]).deadline(Duration::from_secs(240));
    let mut host = host.variable("MALLOC_ARENA_MAX", "1").start(); // the number of arenas that the allocator creates for short-lived threads varies
    let mut early = [0; 6];
    for cycle in 1..=cycles {
        start(&mut host, dir.path());
        host.ask("spans main 10, thread, spans worker 10");
        if cycle == cycles / 10 {
            host.ask("flush");
            early = resources(host.pid());
        }
        host.ask("lane, lane-end");
    }
    host.ask("flush");
    let late = resources(host.pid());
    let more = [1024, 1024, 14, 40, 8, 6]; // 14 rings belong to one or two recordings
    let is_more = (0..6).any(|at| late[at] > early[at] + more[at]);
    assert!(!is_more, "{early:?} {late:?}");
    let outcome = host.end();
    assert!(outcome.one_line().contains("removed 1 earlier run"));
    HostRecording::in_dir(dir.path()).assert_exactly(&[("main", 10), ("worker", 10)]);
    assert_eq!(previous_runs(dir.path()).len(), 20);
}

#[test]
fn children_forked_during_a_restart_record_whole() {
    let dir = scratch();
    let path = dir.path().display().to_string();
    let cycles = rounds(10, 40).to_string();
    let host = host(dir.path(), &["restart-forks", &path, &cycles]);
    let host = host.variable("SA_PROFILE_OLD_RUNS", "1000");
    let outcome = host.deadline(Duration::from_secs(120)).run().quiet();
    let mut words = outcome.stdout.split_whitespace();
    let [children, ended_well] = [(); 2].map(|()| words.next().expect("a count"));
    assert_eq!(children, ended_well);
    let spans = Merged::select(dir.path(), Runs::All).count("child");
    assert_eq!(spans, 7 * children.parse::<u64>().expect("a number"));
}

/// Twice a worker restarts first and its main process follows. Until it does, both recordings are in one trace. Then the main process restarts alone.
#[test]
fn workers_join_the_current_or_next_run_of_their_main_process() {
    let dir = scratch();
    let dir = dir.path();
    let mut main = script(dir);
    main.ask("spans main-1 10");
    let first = run_id(&mut main);
    // The worker's environment is older than the restarts, like that of a spawned worker.
    let spawned_by = |main: &Live| {
        let host = host(dir, &["script"]).variable("SA_PROFILE_RUN", &first);
        let host = host.variable("SA_PROFILE_MAIN_PID", main.pid().to_string());
        host.variable("SA_PROFILE_THREADS", "1").start()
    };
    let mut worker = spawned_by(&main);
    worker.ask("spans worker-1 10");
    assert_eq!(run_id(&mut worker), first);
    for cycle in 2..4 {
        let ahead = start(&mut worker, dir);
        assert_eq!(ahead["main"], false);
        worker.ask(&format!("spans worker-{cycle} 10, flush"));
        let labels = Merged::newest(dir).labels();
        let both = [format!("main-{}", cycle - 1), format!("worker-{cycle}")];
        assert!(
            both.iter().all(|label| labels.contains(label)),
            "{labels:?}"
        );
        assert_switched(dir, [&mut main, &mut worker]);
        let begun = start(&mut main, dir);
        assert_eq!(
            (&begun["run"], &begun["main"]),
            (&ahead["run"], &true.into())
        );
        assert_switched(dir, [&mut main, &mut worker]);
        main.ask(&format!("spans main-{cycle} 10, flush"));
        let both = [format!("main-{cycle}"), format!("worker-{cycle}")];
        assert_eq!(Merged::newest(dir).labels(), both);
    }
    let mut late = spawned_by(&main);
    assert_eq!(run_id(&mut late), run_id(&mut main));
    let _ended = late.end().quiet();
    let third = run_id(&mut main);
    let fourth = start(&mut main, dir);
    assert_ne!(fourth["run"], third.as_str());
    assert!(previous_runs(dir).contains(&third));
    worker.ask("spans later 10"); // the worker is not affected
    let joined = start(&mut worker, dir);
    assert_eq!(
        (&joined["run"], &joined["main"]),
        (&fourth["run"], &false.into())
    );
    main.ask("spans main-4 10");
    let _ended = [worker, main].map(|host| host.end().quiet());
    assert_eq!(Merged::newest(dir).labels(), ["main-4"]);
    let previous = Merged::select(dir, Runs::Previous).labels();
    assert_eq!(previous, ["later", "main-3", "worker-3"]);
    // A run id set by a launcher stays the same.
    let launched = host(dir, &["script"]).variable("SA_PROFILE_RUN", "launched");
    let mut launched = launched.start();
    assert_eq!(run_id(&mut launched), "launched");
    assert_eq!(start(&mut launched, dir)["run"], "launched");
}

/// Stops and starts the processes with the control file.
fn assert_switched(dir: &Path, mut hosts: [&mut Live; 2]) {
    for (cause, levels) in [
        (SwitchCause::Stop, &[][..]),
        (SwitchCause::Start, &[Level::E2e][..]),
    ] {
        let control = control(dir, cause, levels, Duration::from_millis(300));
        switch(dir, &control, 2);
        let enabled = hosts.each_mut().map(|host| host.who()["enabled"] == true);
        assert_eq!(enabled, [cause == SwitchCause::Start; 2], "{cause:?}");
    }
}

#[test]
fn a_process_goes_from_one_directory_to_another_and_back_and_to_none() {
    let (one, other) = (scratch(), scratch());
    let mut host = script(one.path());
    host.ask("spans a 10, finish, spans between 10");
    assert_eq!(start(&mut host, other.path())["main"], true);
    host.ask("spans b 10");
    let mut next = script(one.path());
    let is_main = next.who()["main"] == true;
    assert!(is_main, "nobody holds the directory that was left");
    let _ended = next.end().quiet();
    start(&mut host, one.path());
    host.ask("spans c 10");
    let exports = host.ask("exports");
    assert!(exports.contains(&one.path().display().to_string()));
    let said = host.ask("start ");
    assert!(said.starts_with("nothing requests recording"), "{said}");
    host.ask("spans d 10");
    let file = other.path().join("run");
    let said = host.ask(&format!("start {}/below", file.display()));
    assert!(said.starts_with("recording is off"), "{said}");
    host.ask("spans e 10");
    let _ended = host.end().quiet();
    HostRecording::in_dir(other.path()).assert_exactly(&[("b", 10)]);
    HostRecording::in_dir(one.path()).assert_exactly(&[("c", 10), ("d", 10)]);
    let earlier = previous_runs(one.path()).into_iter();
    let earlier = earlier.map(|run| one.path().join("previous").join(run));
    let counts: BTreeSet<_> = earlier
        .map(|run| HostRecording::in_dir(&run).counts())
        .collect();
    let expected = [[].into(), [("a".to_owned(), 10)].into()];
    assert_eq!(counts, expected.into());
}
