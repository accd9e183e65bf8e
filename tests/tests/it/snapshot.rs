//! Snapshots of runs that record at full rate: they contain everything acknowledged before, and merge without damage.

use crate::{host, victim};
use e2e::chance::{Chance, rounds};
use e2e::host_support::{HostRecording, Merged, ring_files, scratch};
use e2e::ledger::{Lack, Verdict, autopsy, judge_live, snapshot};
use e2e::order::Pattern;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

const BOUND: (&str, &str) = ("SA_PROFILE_MAX_MB", "4");

/// Takes snapshots of a victim that keeps recording, and checks that each one contains everything recorded before it.
fn check_snapshots(threads: usize, pattern: Pattern, variables: &[(&str, &str)]) {
    let mut chance = Chance::new();
    let mut victim = victim(threads, pattern, variables);
    let mut all = Verdict::default();
    for number in 0..rounds(4, 24) {
        std::thread::sleep(chance.pause(Duration::from_millis(20)));
        let out = victim.scratch(&format!("out-{number}"));
        let floor = snapshot(&victim.progress, threads);
        let report = trace_merge::snapshot(&victim.directory(), &out).unwrap();
        let read = (report.fragments, report.unreadable.len());
        assert_eq!(read, (1, 0), "{report:?}");
        assert_eq!(
            ring_files(&out).len(),
            0,
            "the ring's contents are in the fragment"
        );
        all += judge_live(&out, &floor, Lack::First);
        fs::remove_dir_all(out).unwrap();
    }
    victim.kill();
    let rest = autopsy(&victim, Lack::First);
    let seed = chance.seed;
    println!("SNAPSHOT {pattern:?} seed={seed}: {all:?}\n  the run itself: {rest:?}");
    assert!(all.read > 0 && all.is_clean() && rest.is_clean());
}

#[test]
fn snapshots_of_changing_segments_and_of_a_growing_one_are_complete() {
    check_snapshots(8, Pattern::Flat, &[BOUND]);
    check_snapshots(4, Pattern::Bursts, &[]);
}

#[test]
fn full_segments_are_linked_and_outlive_the_run() {
    let place = scratch();
    let (dir, out) = (place.path().join("run"), place.path().join("out"));
    let bounded = |arguments: &[&str]| {
        let host = host(&dir, arguments).variable(BOUND.0, BOUND.1);
        host.variable("SA_PROFILE_OLD_RUNS", "0")
    };
    let mut live = bounded(&["script"]).start();
    live.ask("spans work 50000, guard, flush");
    let report = trace_merge::snapshot(&dir, &out).unwrap();
    assert!(report.linked >= 2 && report.copied == 1, "{report:?}");
    let shared = fs::read_dir(out.join("fragments")).unwrap().flatten();
    let shared = shared.filter(|entry| entry.metadata().unwrap().nlink() == 2);
    assert_eq!(shared.count(), report.linked);
    live.ask("spans work 50000");
    live.kill();
    let next = bounded(&["spans", "next", "10"]).run();
    let line = next.one_line();
    assert!(line.contains("removed 1 earlier run"), "{line}");
    let left = fs::read_dir(dir.join("fragments")).unwrap().count();
    assert_eq!(left, 1, "the crashed run only remains in the snapshot");
    assert!(fs::read_dir(dir.join("previous")).unwrap().next().is_none());
    let found = HostRecording::in_dir(&out);
    found.assert_accounted(50_000);
    let open: Vec<_> = found.unfinished.iter().map(|span| &span["name"]).collect();
    assert_eq!(open, ["guard"], "open spans are shown as unfinished");
    found.assert_merged(&Merged::newest(&out));
}
