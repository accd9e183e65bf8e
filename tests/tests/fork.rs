//! fork, exec, spawn and daemons: every span is found once, under the pid that recorded it, and the host never notices.

use e2e::host_support::{Found, Host, Merged, Outcome, full, scratch, undisturbed};
use format_oracle::reader::read_dir;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

const HOST: &str = env!("CARGO_BIN_EXE_host");

/// Runs the host recorded and plain; recording must not even say a word.
fn recorded(dir: &Path, arguments: &[&str]) -> Outcome {
    undisturbed(HOST, dir, arguments).quiet()
}

fn fork_with_ending(ending: &str) {
    let dir = scratch();
    let outcome = recorded(dir.path(), &["fork", ending, "5000"]);
    let found = Found::in_dir(dir.path());
    found.assert_exactly(&[("before", 5000), ("child", 5000), ("after", 5000)]);
    assert_eq!(found.pids("before"), BTreeSet::from([outcome.pid]));
    assert_eq!(found.pids("after"), BTreeSet::from([outcome.pid]));
    let child = found.pids("child");
    assert_eq!(child.len(), 1);
    assert!(
        !child.contains(&outcome.pid),
        "the child recorded under its parent's pid"
    );
    assert_eq!(found.headers.len(), 2);
    assert_eq!(found.unfinished, Vec::<serde_json::Value>::new());
    let merged = Merged::newest(dir.path());
    assert_eq!((merged.spans(), merged.processes()), (15_000, 2));
}

#[test]
fn fork_without_exec_keeps_every_span_when_the_child_ends_by_underscore_exit() {
    fork_with_ending("_exit");
}

#[test]
fn fork_without_exec_keeps_every_span_when_the_child_exits() {
    fork_with_ending("exit");
}

#[test]
fn fork_without_exec_keeps_every_span_when_both_return_from_main() {
    let dir = scratch();
    let outcome = Host::new(HOST)
        .arguments(&["fork", "return", "5000"])
        .recorded_in(dir.path())
        .run()
        .quiet();
    let found = Found::in_dir(dir.path());
    found.assert_exactly(&[("before", 5000), ("child", 5000), ("after", 5000)]);
    assert_eq!(found.pids("after"), BTreeSet::from([outcome.pid]));
}

#[test]
fn fork_before_anything_is_recorded_gives_each_process_its_own_fragment() {
    let dir = scratch();
    let outcome = recorded(dir.path(), &["--lazy", "fork", "_exit", "1"]);
    let found = Found::in_dir(dir.path());
    found.assert_exactly(&[("before", 1), ("child", 1), ("after", 1)]);
    assert_eq!(found.pids("before"), BTreeSet::from([outcome.pid]));
}

#[test]
fn fork_while_four_threads_record_never_hangs_and_every_child_records() {
    let forks: u64 = if full() { 1000 } else { 200 };
    let dir = scratch();
    let outcome = Host::new(HOST)
        .arguments(&["fork-busy", &forks.to_string()])
        .recorded_in(dir.path())
        .deadline(Duration::from_secs(300))
        .run()
        .quiet();
    let said: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(said["failed"], 0, "children that hung or crashed");
    let threads = said["threads"].as_array().expect("a list of counts");
    let mut expected: Vec<(String, u64)> = vec![("forked".to_owned(), forks)];
    for (number, count) in threads.iter().enumerate() {
        expected.push((format!("thread-{number}"), count.as_u64().expect("a count")));
    }
    let expected: Vec<(&str, u64)> = expected
        .iter()
        .map(|(label, count)| (label.as_str(), *count))
        .collect();
    let found = Found::in_dir(dir.path());
    found.assert_exactly(&expected);
    let indices: BTreeSet<u64> = found
        .work
        .iter()
        .filter(|work| work.label == "forked")
        .map(|work| work.index)
        .collect();
    assert_eq!(indices, (0..forks).collect(), "each child's span");
    assert!(!found.pids("forked").contains(&outcome.pid));
}

#[test]
fn spans_open_at_the_fork_end_in_the_parent_only() {
    let dir = scratch();
    let outcome = recorded(dir.path(), &["fork-open"]);
    let found = Found::in_dir(dir.path());
    found.assert_exactly(&[
        ("child.ended", 3),
        ("child.ender", 3),
        ("child.leaver", 3),
        ("open.async", 1),
        ("open.begun", 1),
        ("open.guard", 1),
    ]);
    for label in ["open.guard", "open.async", "open.begun"] {
        assert_eq!(found.pids(label), BTreeSet::from([outcome.pid]), "{label}");
    }
    assert_eq!(found.unfinished, Vec::<serde_json::Value>::new());
}

#[test]
fn exec_goes_on_as_the_same_process_in_a_second_fragment() {
    let dir = scratch();
    let outcome = recorded(dir.path(), &["exec", "3000"]);
    let found = Found::in_dir(dir.path());
    found.assert_exactly(&[("before", 3000), ("after", 3000)]);
    assert_eq!(found.pids("before"), BTreeSet::from([outcome.pid]));
    assert_eq!(found.pids("after"), BTreeSet::from([outcome.pid]));
    assert_eq!(found.headers.len(), 2, "two fragments");
    let start_times: BTreeSet<String> = found.header_values("start_time").into_iter().collect();
    assert_eq!(start_times.len(), 1, "one process");
    let nonces: BTreeSet<String> = found.header_values("nonce").into_iter().collect();
    assert_eq!(nonces.len(), 2, "two recorders");
    let open: Vec<&serde_json::Value> = found.unfinished.iter().collect();
    assert_eq!(open.len(), 1, "the span open at the exec: {open:?}");
    let merged = Merged::newest(dir.path());
    assert_eq!((merged.spans(), merged.processes()), (6000, 1));
}

#[test]
fn spawned_children_join_the_run() {
    let dir = scratch();
    recorded(dir.path(), &["spawn", "500"]);
    let found = Found::in_dir(dir.path());
    found.assert_exactly(&[
        ("command-0", 500),
        ("command-1", 500),
        ("command-2", 500),
        ("parent", 500),
        ("spawned", 500),
    ]);
    let runs: BTreeSet<String> = found.header_values("run").into_iter().collect();
    assert_eq!(runs.len(), 1, "one run: {runs:?}");
    let mains = found
        .headers
        .iter()
        .filter(|header| header["main"] == true)
        .count();
    assert_eq!(
        (found.headers.len(), mains),
        (5, 1),
        "five processes, one of them main"
    );
    let merged = Merged::newest(dir.path());
    assert_eq!((merged.spans(), merged.processes()), (2500, 5));
}

/// The lines that the daemon writes to its own file.
fn host_data() -> String {
    let lines =
        (0..40).flat_map(|round| (0..50).map(move |line| format!("host data {round} {line}\n")));
    lines.collect()
}

fn assert_daemon(dir: &Path, file: &Path, from_start: &[(&str, u64)]) {
    assert_eq!(
        std::fs::read_to_string(file).expect("the daemon's file"),
        host_data(),
        "the host's own data"
    );
    let found = Found::in_dir(dir);
    let rounds: Vec<(String, u64)> = (0..40)
        .map(|round| (format!("daemon-{round}"), 100))
        .collect();
    let mut expected: Vec<(&str, u64)> = rounds
        .iter()
        .map(|(label, count)| (label.as_str(), *count))
        .collect();
    expected.extend(from_start);
    found.assert_exactly(&expected);
    let cpu = std::fs::read_to_string(file.with_extension("data.cpu")).expect("the CPU time");
    let cpu_ms: u64 = cpu.parse().expect("milliseconds");
    assert!(
        cpu_ms < 500,
        "the recorder used {cpu_ms} ms of CPU in 1500 ms in which the host did nothing"
    );
}

/// Waits until a process that nobody here can wait for has ended.
fn wait_for_end(pid_file: &Path) {
    let start = Instant::now();
    let ended = || {
        let pid = std::fs::read_to_string(pid_file)
            .ok()
            .filter(|pid| !pid.is_empty())?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    };
    while ended().is_none() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "the daemon does not end"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_daemon_that_closes_every_descriptor_keeps_its_data_and_its_spans() {
    let (dir, own) = (scratch(), scratch());
    let file = own.path().join("host.data");
    let path = file.display().to_string();
    let _outcome = Host::new(HOST)
        .arguments(&["daemon", "fork", &path, "4000"])
        .recorded_in(dir.path())
        .run()
        .quiet();
    wait_for_end(&file.with_extension("data.pid"));
    assert_daemon(dir.path(), &file, &[("before", 4000), ("between", 4000)]);
}

#[test]
fn a_host_that_closes_our_descriptors_in_place_keeps_its_data_and_its_spans() {
    let (dir, own) = (scratch(), scratch());
    let file = own.path().join("host.data");
    let path = file.display().to_string();
    let _outcome = Host::new(HOST)
        .arguments(&["daemon", "in-place", &path, "4000"])
        .recorded_in(dir.path())
        .run()
        .quiet();
    assert_daemon(dir.path(), &file, &[("before", 4000)]);
}

/// A daemon whose child, and a child of that, give up their rights after the directory was made, as nginx's workers do.
mod issue_19_children_without_rights {
    use super::*;
    use e2e::host_support::is_root;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    const NOBODY: &str = "65534";
    const COUNT: u64 = 500;

    fn daemon(ending: &str, dir: &Path) -> Host {
        let count = COUNT.to_string();
        Host::new(HOST)
            .arguments(&["drop-rights", ending, NOBODY, &count])
            .recorded_in(dir)
    }

    /// Asserts that the trace says how many processes are missing, why, and what to do.
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
        let events = merged.events().iter();
        let mut told = events.filter(|event| event["args"]["cause"] == "children_refused");
        let told = told.next().expect("the trace shows it");
        let args = &told["args"];
        assert_eq!(
            (&args["processes"], &args["errno"]),
            (&2.into(), &13.into())
        );
    }

    #[test]
    fn are_counted_and_the_warning_names_the_remedy() {
        if !is_root("issue_19_children_without_rights") {
            return;
        }
        let dir = scratch();
        let outcome = daemon("ended", dir.path()).run();
        let said = outcome.one_line();
        assert!(
            said.contains("user 65534") && said.contains("SA_PROFILE_MODE=0660"),
            "{said}"
        );
        Found::in_dir(dir.path()).assert_exactly(&[("after", COUNT), ("before", COUNT)]);
        assert_refused(dir.path());
    }

    #[test]
    fn are_counted_although_the_parent_is_killed() {
        if !is_root("issue_19_children_without_rights") {
            return;
        }
        let dir = scratch();
        let _outcome = daemon("killed", dir.path()).run().was_killed();
        Found::in_dir(dir.path()).assert_exactly(&[("before", COUNT)]);
        assert_refused(dir.path()); // and settles it
        assert_refused(dir.path());
    }

    #[test]
    fn record_where_the_remedy_was_taken() {
        if !is_root("issue_19_children_without_rights") {
            return;
        }
        let place = scratch();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("own folder");
        let dir = place.path().join("run");
        fs::create_dir(&dir).expect("a new folder");
        std::os::unix::fs::chown(&dir, None, Some(65534)).expect("root may");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o2770)).expect("own folder");
        let host = daemon("ended", &dir).variable("SA_PROFILE_MODE", "0660");
        let _outcome = host.run().quiet();
        Found::in_dir(&dir).assert_exactly(&[
            ("after", COUNT),
            ("before", COUNT),
            ("child", COUNT),
            ("grandchild", COUNT),
        ]);
        assert_eq!(Merged::newest(&dir).refused(), 0);
    }
}

/// Returns the names of the processes in a merged trace, by pid.
fn process_names(merged: &Merged) -> BTreeMap<u32, String> {
    let names = merged.events().iter();
    let names = names.filter(|event| event["name"] == "process_name");
    let names = names.filter_map(|event| {
        let pid = u32::try_from(event["pid"].as_u64()?).ok()?;
        Some((pid, event["args"]["name"].as_str()?.to_owned()))
    });
    names.collect()
}

#[test]
fn issue_47_a_forked_child_is_named_after_its_parent() {
    for (way, own, expected) in [
        ("fork", "worker-0", "worker-0"),
        ("raw", "worker-0", "worker-0"),
        ("fork", "", "host"),
    ] {
        let dir = scratch();
        let outcome = recorded(dir.path(), &["fork-named", way, own]);
        let found = Found::in_dir(dir.path());
        found.assert_exactly(&[("parent", 3), ("child", 3), ("grandchild", 3)]);
        let mut names = BTreeMap::from([(outcome.pid, expected.to_owned())]);
        for label in ["child", "grandchild"] {
            let pids = found.pids(label);
            names.extend(
                pids.iter()
                    .map(|pid| (*pid, format!("{expected} fork {pid}"))),
            );
        }
        assert_eq!(names.len(), 3);
        let merged = Merged::newest(dir.path());
        assert_eq!(process_names(&merged), names, "{way}");
        let fragments = read_dir(dir.path()).events;
        let told = fragments
            .iter()
            .filter(|event| event["name"] == "process_name");
        assert!(
            told.count() <= usize::from(!own.is_empty()),
            "no event of theirs"
        );
    }
}
