//! Snapshots of runs that record at full rate: what was acknowledged before is in them, and they merge without damage.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says what it found, and fails where it stands"
)]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use e2e::chance::{Chance, rounds};
use e2e::host_support::{Found, Host, Merged, ring_files, scratch};
use e2e::kept::{Kept, judge_kept, judge_live};
use e2e::ledger::{Seen, snapshot};
use e2e::merged;
use e2e::order::{Ending, Order, Pattern};
use e2e::victim::Victim;
use format_oracle::reader::read_dir_as;

const VICTIM: &str = env!("CARGO_BIN_EXE_victim");
const HOST: &str = env!("CARGO_BIN_EXE_host");
/// Snapshots of one victim.
const SNAPSHOTS: usize = 8;
const BOUND: (&str, &str) = ("SA_PROFILE_MAX_MB", "4");

fn start(threads: usize, pattern: Pattern, variables: &[(&str, &str)]) -> Victim {
    let order = Order {
        threads,
        pattern,
        ending: Ending::Never,
    };
    let mut victim = Victim::start_with(VICTIM, order, variables).unwrap();
    victim.wait_ready().unwrap();
    victim
}

/// Takes a snapshot and judges it by both readers.
fn take(victim: &Victim, out: &Path) -> Kept {
    let floor = snapshot(&victim.progress, victim.order.threads);
    let report = trace_merge::snapshot(&victim.directory(), out).unwrap();
    assert_eq!(
        (report.fragments, report.unreadable.len()),
        (1, 0),
        "{report:?}"
    );
    assert_eq!(
        ring_files(out).len(),
        0,
        "what the ring held is in the fragment"
    );
    let mut kept = judge_live(&Seen::by_second_reader(read_dir_as(out)), &floor);
    let merge = judge_live(&merged::merge(out, &victim.scratch("trace.json")), &floor);
    kept.wrong.extend(
        merge
            .wrong
            .into_iter()
            .map(|wrong| format!("merge: {wrong}")),
    );
    kept
}

/// Several victims in turn: each snapshot of one holds all it has recorded, and it goes on recording.
fn take_many(name: &str, threads: usize, pattern: Pattern, variables: &[(&str, &str)]) {
    for _ in 0..rounds(1) {
        take_some(name, threads, pattern, variables);
    }
}

fn take_some(name: &str, threads: usize, pattern: Pattern, variables: &[(&str, &str)]) {
    let mut chance = Chance::new();
    let seed = chance.seed;
    let mut victim = start(threads, pattern, variables);
    let mut all = Kept::default();
    for number in 0..SNAPSHOTS {
        std::thread::sleep(chance.pause(Duration::from_millis(20)));
        let out = victim.scratch(&format!("out-{number}"));
        let kept = take(&victim, &out);
        if !kept.wrong.is_empty() {
            println!("snapshot {number} of {name}: {kept}");
        }
        all += kept;
        fs::remove_dir_all(out).unwrap();
    }
    victim.kill().unwrap();
    let floor = snapshot(&victim.progress, threads);
    let rest = judge_kept(
        &Seen::by_second_reader(read_dir_as(&victim.directory())),
        &floor,
    );
    println!(
        "SNAPSHOT {name} threads={threads} count={SNAPSHOTS} seed={seed}: {all}\n  the run itself: {rest}"
    );
    assert!(all.read > 0 && all.wrong.is_empty() && rest.wrong.is_empty());
}

#[test]
fn at_full_rate_with_segments_that_come_and_go() {
    take_many("bounded", 8, Pattern::Flat, &[BOUND]);
}

#[test]
fn of_one_segment_that_grows() {
    take_many("bursts", 4, Pattern::Bursts, &[]);
}

#[test]
fn open_spans_are_shown_as_unfinished() {
    let place = scratch();
    let dir = place.path().join("run");
    let host = Host::new(HOST).arguments(&["script"]).recorded_in(&dir);
    let mut live = host.start();
    let steps: [(&[&str], &[&str]); 3] = [
        (
            &["guard", "spans work 10", "begin step"],
            &["guard", "step"],
        ),
        (&["end step", "spans work 10"], &["guard"]),
        (&["guard-end"], &[]),
    ];
    for (number, (words, open)) in steps.into_iter().enumerate() {
        for word in words {
            live.ask(word);
        }
        let out = place.path().join(format!("out-{number}"));
        trace_merge::snapshot(&dir, &out).unwrap();
        let second: Seen = Seen::by_second_reader(read_dir_as(&out));
        let merge = merged::merge(&out, &place.path().join("trace.json"));
        for seen in [&second, &merge] {
            assert_eq!(seen.damage, Vec::<String>::new());
            let names: Vec<&str> = seen.open.iter().map(|(_, name, _)| name.as_str()).collect();
            assert_eq!(names, open, "{words:?}");
        }
    }
    live.kill();
}

#[test]
fn full_segments_are_shared_with_the_run_and_stay_when_it_is_cleaned_away() {
    let place = scratch();
    let (dir, out) = (place.path().join("run"), place.path().join("out"));
    let host = |arguments: &[&str]| {
        let host = Host::new(HOST).arguments(arguments).recorded_in(&dir);
        host.variable(BOUND.0, BOUND.1)
            .variable("SA_PROFILE_OLD_RUNS", "0")
    };
    let mut live = host(&["script"]).start();
    live.ask("spans work 50000");
    live.ask("flush");
    let report = trace_merge::snapshot(&dir, &out).unwrap();
    assert!(report.linked >= 2 && report.copied == 1, "{report:?}");
    let shared = fs::read_dir(out.join("fragments")).unwrap().flatten();
    let shared = shared.filter(|entry| entry.metadata().unwrap().nlink() == 2);
    assert_eq!(shared.count(), report.linked);
    live.ask("spans work 50000");
    live.kill();
    let next = host(&["spans", "next", "10"]).run();
    assert!(
        next.one_line().contains("removed 1 earlier run"),
        "{next:?}"
    );
    let left = fs::read_dir(dir.join("fragments")).unwrap().count();
    assert_eq!(left, 1, "the crashed run is gone but for the snapshot");
    assert!(fs::read_dir(dir.join("previous")).unwrap().next().is_none());
    let found = Found::in_dir(&out);
    found.assert_accounted(50_000);
    found.assert_merged(&Merged::newest(&out));
}
