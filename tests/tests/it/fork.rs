//! fork, exec, spawn and daemons: every span is found once, under the pid that recorded it, and the host never notices.

use crate::{HOST, NOBODY, host};
use e2e::chance::rounds;
use e2e::host_support::{Found, Host, Merged, Outcome, is_root, scratch, undisturbed};
use format_oracle::reader::read_dir;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs the host recorded and plain; recording must not even say a word.
fn recorded(dir: &Path, arguments: &[&str]) -> Outcome {
    undisturbed(HOST, dir, arguments).quiet()
}

#[test]
fn fork_without_exec_keeps_every_span_however_the_child_ends_and_from_the_first_one_on() {
    for (ending, count, is_lazy) in [
        ("_exit", 5000, false),
        ("exit", 5000, false),
        ("return", 5000, false),
        ("_exit", 1, true),
    ] {
        let dir = scratch();
        let arguments = ["--lazy", "fork", ending, &count.to_string()];
        let arguments = &arguments[usize::from(!is_lazy)..];
        let outcome = host(dir.path(), arguments).run().quiet();
        let found = Found::in_dir(dir.path());
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
    let said: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(said["failed"], 0, "children that hung or crashed");
    let found = Found::in_dir(dir.path());
    let mut expected = BTreeMap::from([("forked".to_owned(), forks)]);
    for (number, count) in said["threads"].as_array().unwrap().iter().enumerate() {
        expected.insert(format!("thread-{number}"), count.as_u64().unwrap());
    }
    assert_eq!(found.counts(), expected);
    found.assert_accounted(expected.values().sum());
    assert_eq!(found.lost, 0);
    found.assert_own_pids();
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
    let distinct = |key: &str| BTreeSet::from_iter(found.header_values(key)).len();
    let fragments = (distinct("start_time"), distinct("nonce"));
    assert_eq!(fragments, (1, 2), "one process, two recorders");
    let open = &found.unfinished;
    assert_eq!(open.len(), 1, "the span open at the exec: {open:?}");
    let merged = Merged::newest(dir.path());
    assert_eq!((merged.spans(), merged.processes()), (6000, 1));
}

/// Waits until a process that nobody here can wait for has ended.
fn wait_for_end(pid_file: &Path) {
    let start = Instant::now();
    let ended = || {
        let pid = fs::read_to_string(pid_file).ok();
        let pid = pid.filter(|pid| !pid.is_empty())?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    };
    while ended().is_none() {
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
    let arguments = ["daemon", &file.display().to_string(), "4000"];
    let _outcome = host(dir.path(), &arguments).run().quiet();
    wait_for_end(&file.with_extension("data.pid"));
    let lines = (0..ROUNDS)
        .flat_map(|round| (0..50).map(move |line| format!("host data {round} {line}\n")));
    let data = fs::read_to_string(&file).unwrap();
    assert_eq!(data, lines.collect::<String>(), "the host's own data");
    let rounds = (0..ROUNDS).map(|round| (format!("daemon-{round}"), 100));
    let whole = ["before", "between"].map(|label| (label.to_owned(), 4000));
    let found = Found::in_dir(dir.path());
    assert_eq!(found.counts(), rounds.chain(whole).collect());
    found.assert_accounted(4000 * 3);
    found.assert_own_pids();
    let cpu_ms: u64 = fs::read_to_string(file.with_extension("data.cpu"))
        .unwrap()
        .parse()
        .unwrap();
    // Of 1500 ms in which the host did nothing.
    assert!(cpu_ms < 500, "the recorder used {cpu_ms} ms of CPU");
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
    let mut losses = merged.of_name("sa_loss");
    let told = losses.find(|event| event["args"]["cause"] == "children_refused");
    let args = &told.expect("the trace shows it")["args"];
    let numbers = (&args["processes"], &args["errno"]);
    assert_eq!(numbers, (&2.into(), &13.into()));
}

/// A daemon whose child, and a child of that, give up their rights after the directory was made, as nginx's workers do.
#[test]
fn issue_19_children_without_rights_are_counted_and_record_where_the_remedy_was_taken() {
    const COUNT: u64 = 500;
    if !is_root("issue_19_children_without_rights") {
        return;
    }
    let user = NOBODY.to_string();
    let daemon = |ending: &str, dir: &Path| -> Host {
        host(dir, &["drop-rights", ending, &user, &COUNT.to_string()])
    };
    let dir = scratch();
    let outcome = daemon("ended", dir.path()).run();
    let said = outcome.one_line();
    let names_remedy = said.contains("user 65534") && said.contains("SA_PROFILE_MODE=0660");
    assert!(names_remedy, "{said}");
    Found::in_dir(dir.path()).assert_exactly(&[("after", COUNT), ("before", COUNT)]);
    assert_refused(dir.path());

    let dir = scratch();
    let _outcome = daemon("killed", dir.path()).run().was_killed();
    Found::in_dir(dir.path()).assert_exactly(&[("before", COUNT)]);
    assert_refused(dir.path()); // and settles it
    assert_refused(dir.path());

    let place = scratch();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let dir = place.path().join("run");
    fs::create_dir(&dir).unwrap();
    std::os::unix::fs::chown(&dir, None, Some(NOBODY)).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o2770)).unwrap();
    let host = daemon("ended", &dir).variable("SA_PROFILE_MODE", "0660");
    let _outcome = host.run().quiet();
    let labels = ["after", "before", "child", "grandchild"];
    Found::in_dir(&dir).assert_exactly(&labels.map(|label| (label, COUNT)));
    assert_eq!(Merged::newest(&dir).refused(), 0);
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
        let mut expected_names = BTreeSet::from([(outcome.pid, expected.to_owned())]);
        for pid in found.pids("child").union(&found.pids("grandchild")) {
            expected_names.insert((*pid, format!("{expected} fork {pid}")));
        }
        let merged = Merged::newest(dir.path());
        let names = merged.of_name("process_name").map(|event| {
            let name = event["args"]["name"].as_str().unwrap().to_owned();
            (event["pid"].as_u64().unwrap() as u32, name)
        });
        assert_eq!(names.collect::<BTreeSet<_>>(), expected_names, "{way}");
        let fragments = read_dir(dir.path()).events;
        let told = fragments.iter();
        let told = told.filter(|event| event["name"] == "process_name");
        assert!(
            told.count() <= usize::from(!own.is_empty()),
            "no event of theirs"
        );
    }
}
