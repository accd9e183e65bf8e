//! fork, exec, spawn and daemons: every span appears once, under the pid that recorded it, and the host is not disturbed.

use crate::{NOBODY, host, script};
use e2e::chance::rounds;
use e2e::host_support::{Host, HostRecording, Merged, is_root, make_folder, scratch, set_mode};
use format_oracle::reader::read_dir;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn fork_without_exec_keeps_every_span_from_the_first_one_on_however_the_child_ends() {
    for (options, ending, count) in [
        (&[][..], "", 5000),
        (&[], ", exit", 5000),
        (&["--lazy"], "", 1),
    ] {
        let dir = scratch();
        let mut host = host(dir.path(), &[options, &["script"]].concat()).start();
        host.ask(&format!("spans before {count}"));
        host.ask(&format!("fork, spans child {count}{ending}"));
        host.ask(&format!("spans after {count}"));
        let outcome = host.end().quiet();
        let found = HostRecording::in_dir(dir.path());
        found.assert_exactly(&[("before", count), ("child", count), ("after", count)]);
        assert_eq!(found.pids("before"), BTreeSet::from([outcome.pid]));
        assert_eq!(found.pids("after"), BTreeSet::from([outcome.pid]));
        let child = found.pids("child");
        assert!(child.len() == 1 && !child.contains(&outcome.pid));
        assert_eq!(found.headers.len(), 2);
        assert_eq!(found.unfinished, Vec::<serde_json::Value>::new());
        let merged = Merged::newest(dir.path());
        assert_eq!((merged.spans(), merged.processes()), (3 * count, 2));
    }
}

#[test]
fn fork_while_four_threads_record_never_hangs_and_every_child_records() {
    let forks = rounds(60, 1000) as u64;
    let dir = scratch();
    let host = host(dir.path(), &["fork-busy", &forks.to_string()]);
    let outcome = host.deadline(Duration::from_secs(300)).run().quiet();
    let counts = outcome.stdout.lines().next().unwrap();
    let counts: Vec<u64> = serde_json::from_str(counts).unwrap();
    let found = HostRecording::in_dir(dir.path());
    let counts = counts.into_iter().enumerate();
    let threads = counts.map(|(number, count)| (format!("thread-{number}"), count));
    let expected: BTreeMap<_, _> = threads.chain([("forked".to_owned(), forks)]).collect();
    assert_eq!(found.counts(), expected);
    found.assert_accounted(expected.values().sum());
    assert_eq!(found.lost, 0);
    found.assert_own_pids();
    assert!(!found.pids("forked").contains(&outcome.pid));
}

#[test]
fn spans_open_at_the_fork_end_in_the_parent_only() {
    let dir = scratch();
    let mut host = script(dir.path());
    let ends = "end begun, lane-end, guard-end";
    host.ask("guard, lane, begin begun");
    host.ask(&format!("fork, spans ender 3, {ends}, spans ended 3"));
    host.ask("fork, spans leaver 3");
    host.ask(ends);
    let outcome = host.end().quiet();
    let found = HostRecording::in_dir(dir.path());
    found.assert_exactly(&[("ended", 3), ("ender", 3), ("leaver", 3)]);
    assert_eq!(found.unfinished, Vec::<serde_json::Value>::new());
    let mut open = read_dir(dir.path()).events;
    open.retain(|event| event["cat"] == "open");
    let recorded = open
        .iter()
        .map(|event| (event["name"].as_str(), event["pid"].as_u64()));
    let expected = ["begun", "guard", "lane"].map(|name| (Some(name), Some(outcome.pid.into())));
    assert_eq!(open.len(), 3);
    assert_eq!(recorded.collect::<BTreeSet<_>>(), expected.into());
}

#[test]
fn exec_continues_the_process_in_a_second_fragment() {
    let dir = scratch();
    let mut host = script(dir.path());
    host.ask("spans before 3000, process-name before-exec, guard");
    host.send("exec spans after 3000");
    let outcome = host.end().quiet();
    let found = HostRecording::in_dir(dir.path());
    found.assert_exactly(&[("before", 3000), ("after", 3000)]);
    assert_eq!(found.pids("before"), BTreeSet::from([outcome.pid]));
    assert_eq!(found.pids("after"), BTreeSet::from([outcome.pid]));
    let distinct = |key: &str| BTreeSet::from_iter(found.header_values(key)).len();
    let fragments = (distinct("start_time"), distinct("nonce"));
    assert_eq!(fragments, (1, 2), "one process, two recorders");
    let open = &found.unfinished;
    assert_eq!(open.len(), 1, "the span open at the exec: {open:?}");
    let merged = Merged::newest(dir.path());
    assert_eq!((merged.spans(), merged.processes()), (6000, 1));
}

/// Waits until a process that is not a child of the test has ended. Returns the CPU time that it used while idle.
fn wait_for_end(file: &Path) -> u64 {
    let start = Instant::now();
    loop {
        let said = fs::read_to_string(file).unwrap_or_default();
        if let Some((pid, cpu_ms)) = said.trim_end().split_once(' ') {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if stat.is_empty() || stat.contains(") Z ") {
                return cpu_ms.parse().unwrap();
            }
        }
        let is_hanging = start.elapsed() > Duration::from_secs(60);
        assert!(!is_hanging, "the daemon does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_daemon_that_closes_every_descriptor_keeps_its_data_and_its_spans() {
    const ROUNDS: u64 = 40;
    let (dir, own) = (scratch(), scratch());
    let file = own.path().join("host.data");
    let mut host = script(dir.path());
    let serve = format!("spans between 4000, serve {} 4000", file.display());
    host.ask("spans before 4000");
    host.ask(&format!("fork, fork beside, {serve}"));
    let _outcome = host.end().quiet();
    let cpu_ms = wait_for_end(&file.with_extension("data.end"));
    let lines = (0..ROUNDS)
        .flat_map(|round| (0..50).map(move |line| format!("host data {round} {line}\n")));
    let data = fs::read_to_string(&file).unwrap();
    assert_eq!(data, lines.collect::<String>(), "the host's own data");
    let rounds = (0..ROUNDS).map(|round| (format!("daemon-{round}"), 100));
    let others = ["before", "between"].map(|label| (label.to_owned(), 4000));
    let found = HostRecording::in_dir(dir.path());
    assert_eq!(found.counts(), rounds.chain(others).collect());
    found.assert_accounted(4000 * 3);
    found.assert_own_pids();
    // This is out of 1,500 ms in which the host did nothing.
    assert!(cpu_ms < 500, "the recorder used {cpu_ms} ms of CPU");
}

/// Asserts that the report states how many processes are missing, why, and what to do.
fn assert_refused(dir: &Path) {
    let merged = Merged::newest(dir);
    assert_eq!(merged.refused(), 2, "the child and the grandchild");
    let words = merged.words();
    let sentence = words.lines().find(|line| line.contains("recorded nothing"));
    let sentence = sentence.unwrap_or_else(|| panic!("{words}"));
    for part in [
        "2 child processes of host",
        "Permission denied",
        "SA_PROFILE_MODE=0660",
    ] {
        assert!(sentence.contains(part), "{part} in {sentence}");
    }
    let mut losses = merged.events_named("sa_loss");
    let refused = losses.find(|event| event["args"]["cause"] == "children_refused");
    let args = &refused.expect("the trace shows it")["args"];
    let numbers = (&args["processes"], &args["errno"]);
    assert_eq!(numbers, (&2.into(), &13.into()));
}

/// A daemon's child and grandchild give up their rights after the directory was created, like nginx's workers do.
#[test]
fn issue_19_children_without_rights_are_counted_and_can_record_with_the_suggested_mode() {
    const COUNT: u64 = 500;
    if !is_root() {
        return;
    }
    let daemon = |host: Host| {
        let mut host = host.start();
        let user = format!("user {NOBODY}");
        host.ask(&format!("spans before {COUNT}"));
        host.ask(&format!(
            "fork, {user}, spans child {COUNT}, fork, spans grandchild {COUNT}"
        ));
        host
    };
    let dir = scratch();
    let mut ended = daemon(host(dir.path(), &["script"]));
    ended.ask(&format!("spans after {COUNT}"));
    let outcome = ended.end();
    let said = outcome.one_line();
    let names_remedy = said.contains("user 65534") && said.contains("SA_PROFILE_MODE=0660");
    assert!(names_remedy, "{said}");
    HostRecording::in_dir(dir.path()).assert_exactly(&[("after", COUNT), ("before", COUNT)]);
    assert_refused(dir.path());

    let dir = scratch();
    daemon(host(dir.path(), &["script"])).kill();
    HostRecording::in_dir(dir.path()).assert_exactly(&[("before", COUNT)]);
    assert_refused(dir.path()); // settles the run
    assert_refused(dir.path());

    let place = scratch();
    set_mode(place.path(), 0o755);
    let dir = place.path().join("run");
    make_folder(&dir, 0o700);
    std::os::unix::fs::chown(&dir, None, Some(NOBODY)).unwrap();
    set_mode(&dir, 0o2770);
    let mut host = daemon(host(&dir, &["script"]).variable("SA_PROFILE_MODE", "0660"));
    host.ask(&format!("spans after {COUNT}"));
    let _outcome = host.end().quiet();
    let labels = ["after", "before", "child", "grandchild"];
    HostRecording::in_dir(&dir).assert_exactly(&labels.map(|label| (label, COUNT)));
    assert_eq!(Merged::newest(&dir).refused(), 0);
}

#[test]
fn issue_47_a_forked_child_is_named_after_its_parent() {
    for (way, own, expected) in [
        ("fork", "worker-0", "worker-0"),
        ("fork raw", "worker-0", "worker-0"),
        ("fork", "", "host"),
    ] {
        let dir = scratch();
        let mut host = script(dir.path());
        if !own.is_empty() {
            host.ask(&format!("process-name {own}"));
        }
        let again = format!("start {}", dir.path().display());
        host.ask("spans parent 3");
        host.ask(&format!(
            "{way}, spans child 3, {way}, {again}, spans grandchild 3"
        ));
        let outcome = host.end().quiet();
        let found = HostRecording::in_dir(dir.path());
        found.assert_exactly(&[("parent", 3), ("child", 3), ("grandchild", 3)]);
        let mut expected_names = BTreeSet::from([(outcome.pid.into(), expected.to_owned())]);
        for pid in found.pids("child").union(&found.pids("grandchild")) {
            expected_names.insert((u64::from(*pid), format!("{expected} fork {pid}")));
        }
        let merged = Merged::newest(dir.path());
        let names = merged.events_named("process_name").map(|event| {
            let name = event["args"]["name"].as_str().unwrap().to_owned();
            (event["pid"].as_u64().unwrap(), name)
        });
        assert_eq!(names.collect::<BTreeSet<_>>(), expected_names, "{way}");
        let mut name_events = read_dir(dir.path()).events;
        name_events.retain(|event| event["name"] == "process_name");
        let most = usize::from(!own.is_empty());
        assert!(name_events.len() <= most, "the children record no name");
    }
}
