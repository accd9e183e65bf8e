//! Recordings that a process ends and begins anew.

use crate::{host, listening_script as script};
use e2e::chance::rounds;
use e2e::host_support::switch::{control, store, wait_for};
use e2e::host_support::{Found, Live, Merged, Work, previous_runs, scratch};
use sa_format::Level;
use sa_format::control::SwitchCause;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

fn start(live: &mut Live, dir: &Path) -> Value {
    let answer = live.ask(&format!("start {}", dir.display()));
    serde_json::from_str(&answer).unwrap_or_else(|_| panic!("no recording: {answer}"))
}

/// Starts a worker with the variables that its main process had in a run.
fn spawned_by(main: u32, run: &str, dir: &Path) -> Live {
    let host = host(dir, &["script"]).variable("SA_PROFILE_RUN", run);
    let host = host.variable("SA_PROFILE_MAIN_PID", main.to_string());
    host.start()
}

fn merged(dir: &Path, label: &str) -> u64 {
    Merged::newest(dir).count(label)
}

#[test]
fn threads_at_full_speed_lose_nothing_that_was_acknowledged() {
    let (threads, cycles) = (4, rounds(20, 60));
    let dir = scratch();
    let path = dir.path().display().to_string();
    let (of_threads, of_cycles) = (threads.to_string(), cycles.to_string());
    let arguments = ["restart-stress", &path, &of_threads, &of_cycles];
    let host = host(dir.path(), &arguments).deadline(Duration::from_secs(120));
    let outcome = host.run().quiet();
    let mut seen = BTreeSet::new();
    let mut all = 0;
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), cycles);
    for (cycle, line) in lines.into_iter().enumerate() {
        let found = Found::in_dir(&dir.path().join(cycle.to_string()));
        assert_eq!(found.damage, Vec::<String>::new());
        assert_eq!(found.lost, 0);
        for work in &found.work {
            let thread = work.label.split('.').next_back().expect("a thread");
            assert!(
                seen.insert((thread.to_owned(), work.index)),
                "doubled {work:?}"
            );
        }
        let of = |work: &Work| (work.label.clone(), work.index);
        let there: BTreeSet<(String, u64)> = found.work.iter().map(of).collect();
        for (thread, range) in line.split(',').enumerate() {
            let (first, last) = range.split_once(' ').expect("a range");
            let number = |text: &str| text.parse::<u64>().expect("an index");
            for index in number(first).max(1)..=number(last) {
                let wanted = (format!("{cycle}.{thread}"), index);
                assert!(there.contains(&wanted), "{wanted:?} is missing");
                all += 1;
            }
        }
        // A thread may sleep between its look at the number of the recording and its span, but not into the past.
        let is_later = |label: &String| {
            let of = label.split('.').next().unwrap_or_default();
            of.parse::<usize>().is_ok_and(|of| of > cycle)
        };
        let later = found.counts().into_keys().find(is_later);
        assert_eq!(later, None, "in recording {cycle}");
    }
    println!("RESTART acknowledged={all} recorded={}", seen.len());
    assert!(all > cycles * 10_000 / 60, "{all}");
}

#[test]
fn what_is_open_ends_in_neither_recording() {
    let dir = scratch();
    let path = dir.path().display().to_string();
    let host = host(&dir.path().join("first"), &["restart-open", &path]);
    let _outcome = host.run().quiet();
    let old = Found::in_dir(&dir.path().join("old"));
    let names = old.unfinished.iter();
    let names: BTreeSet<&str> = names.filter_map(|event| event["name"].as_str()).collect();
    let open = [
        "open.async",
        "open.async.id",
        "open.begin",
        "open.guard",
        "open.id",
    ];
    assert_eq!(names, BTreeSet::from(open));
    let new = Found::in_dir(&dir.path().join("new"));
    new.assert_exactly(&[("after-the-ends", 5), ("before-the-ends", 5)]);
    assert_eq!(new.unfinished, Vec::<Value>::new());
    let trace = Merged::newest(&dir.path().join("new"));
    assert_eq!(trace.named("inner"), 1);
    assert!(trace.thread_names().contains(&"lead".to_owned()));
    let mut named = trace.of_name("process_name");
    assert!(named.any(|event| event["args"]["name"] == "restarted"));
    for name in open.into_iter().chain(["open.track"]) {
        assert_eq!(trace.named(name), 0, "{name}");
    }
}

#[test]
fn a_thousand_recordings_leave_nothing_behind() {
    let dir = scratch();
    let path = dir.path().display().to_string();
    let cycles = rounds(100, 1000).to_string();
    let host = host(dir.path(), &["restart-many", &path, &cycles]);
    let host = host.deadline(Duration::from_secs(240));
    let outcome = host.variable("MALLOC_ARENA_MAX", "1").run(); // how many arenas the allocator makes for short threads is chance
    let words = outcome.one_line();
    assert!(words.contains("removed 1 earlier run"), "{words}");
    let held: Vec<Value> = outcome
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for (key, more) in [
        ("anon_kib", 1024),
        ("shared_kib", 1024),
        ("ring_maps", 14), // those of one or two recordings
        ("maps", 40),
        ("descriptors", 8),
        ("threads", 6),
    ] {
        let of = |held: &Value| held[key].as_u64().expect("a number");
        assert!(of(&held[1]) <= of(&held[0]) + more, "{key}: {held:?}");
    }
    Found::in_dir(dir.path()).assert_exactly(&[("main", 10), ("worker", 10)]);
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
    let numbers: Vec<u64> = outcome
        .stdout
        .split_whitespace()
        .map(|word| word.parse().expect("a count"))
        .collect();
    assert_eq!(numbers[0], numbers[1], "children that ended well");
    let spans = Merged::all_runs(dir.path()).count("child");
    println!("RESTART children={} spans={spans}", numbers[0]);
    assert_eq!(spans, 7 * numbers[0]);
}

#[test]
fn the_main_process_begins_a_new_run_and_leaves_live_workers_alone() {
    let dir = scratch();
    let mut main = script(dir.path());
    main.ask("spans main-1 10");
    let mut worker = script(dir.path());
    worker.ask("spans worker-1 10");
    let first = main.who()["run"].clone();
    let second = start(&mut main, dir.path());
    assert_eq!(second["main"], true);
    assert_ne!(second["run"], first);
    assert_eq!(previous_runs(dir.path()), [first.as_str().expect("an id")]);
    worker.ask("spans worker-1-later 10");
    let joined = start(&mut worker, dir.path());
    assert_eq!(
        (&joined["main"], &joined["run"]),
        (&Value::Bool(false), &second["run"])
    );
    main.ask("spans main-2 10");
    worker.ask("spans worker-2 10");
    let third = start(&mut main, dir.path());
    assert_ne!(third["run"], second["run"]);
    main.ask("spans main-3 10");
    let _ended = worker.end().quiet();
    let _ended = main.end().quiet();
    assert_eq!(Merged::newest(dir.path()).labels(), ["main-3"]);
    let previous = Merged::previous(dir.path()).labels();
    assert_eq!(previous, ["main-2", "worker-2"]);
}

#[test]
fn a_process_with_the_variables_of_an_earlier_run_joins_the_one_that_its_main_process_has_now() {
    let dir = scratch();
    let mut main = script(dir.path());
    let first = main.who()["run"].as_str().expect("an id").to_owned();
    let second = start(&mut main, dir.path());
    let mut spawned = spawned_by(main.pid(), &first, dir.path());
    assert_eq!(spawned.who()["run"], second["run"]);
    // Where a launcher names the run, it stays the same one.
    let launched = host(dir.path(), &["script"]);
    let mut launched = launched.variable("SA_PROFILE_RUN", "launched").start();
    assert_eq!(launched.who()["run"], "launched");
    assert_eq!(start(&mut launched, dir.path())["run"], "launched");
}

#[test]
fn a_worker_that_comes_first_is_in_the_run_that_its_main_process_begins_next() {
    let dir = scratch();
    let mut main = script(dir.path());
    main.ask("spans main-1 10");
    let first = main.who()["run"].as_str().expect("an id").to_owned();
    // Its environment is from before, as that of a spawned worker is.
    let mut worker = spawned_by(main.pid(), &first, dir.path());
    worker.ask("spans worker-1 10");
    assert_eq!(worker.who()["run"], first.as_str());
    for cycle in 2..4 {
        let ahead = start(&mut worker, dir.path());
        worker.ask(&format!("spans worker-{cycle} 10"));
        worker.ask("flush");
        // Until the main process follows, both are in one trace.
        assert_eq!(merged(dir.path(), &format!("main-{}", cycle - 1)), 10);
        assert_eq!(merged(dir.path(), &format!("worker-{cycle}")), 10);
        let begun = start(&mut main, dir.path());
        assert_eq!(
            (&begun["run"], &begun["main"]),
            (&ahead["run"], &Value::Bool(true))
        );
        main.ask(&format!("spans main-{cycle} 10"));
        main.ask("flush");
        let trace = Merged::newest(dir.path()).labels();
        assert_eq!(trace, [format!("main-{cycle}"), format!("worker-{cycle}")]);
    }
    let _ended = worker.end().quiet();
    let _ended = main.end().quiet();
    assert_eq!(merged(dir.path(), "worker-3"), 10);
    let trace = Merged::previous(dir.path()).labels();
    assert_eq!(trace, ["main-2", "worker-2"]);
}

#[test]
fn a_stop_and_a_start_are_obeyed_after_a_restart_also_ahead_of_the_main_process() {
    let dir = scratch();
    let mut main = script(dir.path());
    main.ask("spans main-1 10");
    let mut worker = script(dir.path());
    worker.ask("spans worker-1 10");
    let ahead = start(&mut worker, dir.path());
    for (followed, processes) in [(false, 2), (true, 2)] {
        if followed {
            assert_eq!(start(&mut main, dir.path())["run"], ahead["run"]);
        }
        for (cause, levels, on) in [
            (SwitchCause::Stop, &[][..], false),
            (SwitchCause::Start, &[Level::E2e][..], true),
        ] {
            let control = control(dir.path(), cause, levels, Duration::from_millis(300));
            store(dir.path(), &control);
            wait_for_id(dir.path(), cause, &control.id, processes);
            assert_eq!(main.who()["enabled"], on, "main, followed {followed}");
            assert_eq!(worker.who()["enabled"], on, "worker, followed {followed}");
        }
    }
    let _ended = worker.end().quiet();
    let _ended = main.end().quiet();
}

/// Waits until so many processes have told that they obeyed a control.
fn wait_for_id(dir: &Path, cause: SwitchCause, id: &str, processes: usize) {
    let begun = Instant::now();
    let of_it = || {
        let told = wait_for(dir, cause, 1).into_iter();
        told.filter(|told| told.switch.control.as_deref() == Some(id))
            .count()
    };
    while of_it() < processes {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{cause:?} is not obeyed"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_process_goes_from_one_directory_to_another_and_back() {
    let (one, other) = (scratch(), scratch());
    let mut host = script(one.path());
    host.ask("spans a 10");
    host.ask("finish");
    host.ask("spans between 10");
    assert_eq!(start(&mut host, other.path())["main"], true);
    host.ask("spans b 10");
    let mut next = script(one.path());
    assert_eq!(
        next.who()["main"],
        true,
        "nobody holds the directory that was left"
    );
    let _ended = next.end().quiet();
    start(&mut host, one.path());
    host.ask("spans c 10");
    assert!(
        host.ask("exports")
            .contains(&one.path().display().to_string())
    );
    let _ended = host.end().quiet();
    Found::in_dir(other.path()).assert_exactly(&[("b", 10)]);
    Found::in_dir(one.path()).assert_exactly(&[("c", 10)]);
    let previous = one.path().join("previous");
    let earlier = previous_runs(one.path());
    let labels = earlier
        .iter()
        .flat_map(|run| Found::in_dir(&previous.join(run)).counts().into_keys());
    assert_eq!((earlier.len(), labels.collect()), (2, vec!["a".to_owned()]));
}

#[test]
fn a_start_that_nothing_asks_for_says_so_and_one_without_files_ends_recording() {
    let dir = scratch();
    let mut host = script(dir.path());
    host.ask("spans a 10");
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("a new file");
    assert!(host.ask("start ").starts_with("nothing asks for recording"));
    host.ask("spans b 10");
    assert!(
        host.ask(&format!("start {}/below", file.display()))
            .starts_with("recording is off")
    );
    host.ask("spans c 10");
    let _ended = host.end().quiet();
    Found::in_dir(dir.path()).assert_exactly(&[("a", 10), ("b", 10)]);
}
