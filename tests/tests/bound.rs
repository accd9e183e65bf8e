//! Bounded disk: the segments of a process stay within `SA_PROFILE_MAX_MB`, and whatever a kill cuts, a segment counts or is told as lost.
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails where it stands; times fit"
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use e2e::chance::{Chance, rounds};
use e2e::host_support::{Found, Host, Merged, previous_runs, ring_files, scratch};
use e2e::kept::{Kept, judge_kept};
use e2e::ledger::{Seen, snapshot};
use e2e::merged;
use e2e::order::{Ending, Order, Pattern};
use e2e::victim::Victim;
use format_oracle::reader::read_dir_as;
use trace_merge::{EventOptions, Mode, Options, Output, Report, Window};

const VICTIM: &str = env!("CARGO_BIN_EXE_victim");
const HOST: &str = env!("CARGO_BIN_EXE_host");
const MIB: u64 = 1 << 20;
/// The least bound there is: four segments.
const BOUND: (&str, &str) = ("SA_PROFILE_MAX_MB", "4");
const FIRST: (&str, &str) = ("SA_PROFILE_KEEP", "first");

fn bounded(threads: usize, variables: &[(&str, &str)]) -> Victim {
    let order = Order {
        threads,
        pattern: Pattern::Flat,
        ending: Ending::Never,
    };
    let mut victim = Victim::start_with(VICTIM, order, variables).unwrap();
    victim.wait_ready().unwrap();
    victim
}

/// The segments of a directory and the disk space of each.
fn segments(dir: &Path) -> BTreeMap<PathBuf, u64> {
    let entries = fs::read_dir(dir.join("fragments"))
        .into_iter()
        .flatten()
        .flatten();
    let paths = entries.map(|entry| entry.path());
    let segments = paths.filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == "jsonl")
    });
    let space = |path: &PathBuf| {
        let metadata = fs::metadata(path).ok()?;
        Some(metadata.len().max(metadata.blocks() * 512))
    };
    segments
        .filter_map(|path| Some((path.clone(), space(&path)?)))
        .collect()
}

/// The number of the newest segment.
fn newest(dir: &Path) -> Option<(u32, PathBuf)> {
    let numbered = segments(dir).into_keys().map(|path| {
        let name = path.to_string_lossy();
        let number = name
            .rsplit_once(".s")
            .map(|(_, end)| end.trim_end_matches(".jsonl"));
        (number.map_or(0, |number| number.parse().unwrap()), path)
    });
    numbered.max()
}

/// Waits until this many segments were begun.
fn wait_for_segments(dir: &Path, count: u32) {
    let start = Instant::now();
    while newest(dir).is_none_or(|(number, _)| number < count) {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "no segment {count}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The disk space of all segments at one moment: none came or went while it was taken.
fn disk_space(dir: &Path) -> Option<u64> {
    let (before, after) = (segments(dir), segments(dir));
    before
        .keys()
        .eq(after.keys())
        .then(|| before.values().sum())
}

/// Judges a dead victim's files by the second reader, by the merge, and by the second reader after it.
fn judge_all(victim: &Victim) -> Kept {
    let floor = snapshot(&victim.progress, victim.order.threads);
    let read = || {
        judge_kept(
            &Seen::by_second_reader(read_dir_as(&victim.directory())),
            &floor,
        )
    };
    let mut kept = read();
    let merge = merged::merge(&victim.directory(), &victim.scratch("trace.json"));
    kept.wrong.extend(
        judge_kept(&merge, &floor)
            .wrong
            .into_iter()
            .map(|wrong| format!("merge: {wrong}")),
    );
    let again = read();
    kept.wrong.extend(
        again
            .wrong
            .into_iter()
            .map(|wrong| format!("after the merge: {wrong}")),
    );
    kept
}

#[test]
fn eight_threads_at_full_rate_stay_within_the_bound() {
    let mut victim = bounded(8, &[BOUND]);
    let (mut most, mut samples) = (0, 0);
    let start = Instant::now();
    let is_enough = |samples| {
        let long = start.elapsed() > Duration::from_secs(2);
        long && samples > 20 && newest(&victim.directory()).is_some_and(|(number, _)| number > 20)
    };
    while !is_enough(samples) {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{samples} samples"
        );
        if let Some(space) = disk_space(&victim.directory()) {
            most = most.max(space);
            samples += 1;
        }
    }
    victim.kill().unwrap();
    let kept = judge_all(&victim);
    println!("BOUND 4 MiB threads=8 samples={samples} most={most} bytes: {kept}");
    assert!(kept.removed > 10_000, "it was at the bound");
    assert!(most <= 5 * MIB, "the bound and one segment");
    assert!(kept.wrong.is_empty(), "{kept}");
}

#[test]
fn a_kill_at_any_moment_of_a_switch_loses_only_whole_segments_that_are_told() {
    let mut chance = Chance::new();
    let (seed, count) = (chance.seed, rounds(10));
    let mut all = Kept::default();
    for round in 0..count {
        let mut victim = bounded([1, 4, 8][round % 3], &[BOUND]);
        wait_for_segments(&victim.directory(), 5);
        std::thread::sleep(chance.pause(Duration::from_millis(200)));
        victim.kill().unwrap();
        let kept = judge_all(&victim);
        if !kept.wrong.is_empty() {
            println!("round {round}: kept in {}: {kept}", victim.keep().display());
        }
        all += kept;
    }
    println!("BOUND kills={count} seed={seed}: {all}");
    assert!(all.removed > 0 && all.wrong.is_empty());
}

#[test]
fn a_clean_exit_leaves_the_newest_segments_with_their_names_and_no_ring() {
    let dir = scratch();
    let host = Host::new(HOST).arguments(&["spans", "work", "200000"]);
    let _outcome = host
        .recorded_in(dir.path())
        .variable(BOUND.0, BOUND.1)
        .run()
        .quiet();
    assert!(disk_space(dir.path()).unwrap() <= 4 * MIB);
    assert_eq!(ring_files(dir.path()), Vec::<PathBuf>::new());
    let found = Found::in_dir(dir.path());
    found.assert_accounted(200_000);
    assert!(found.lost > 100_000 && found.recorded() > 10_000);
    assert!(
        found
            .header_values("segment")
            .iter()
            .all(|segment| segment != "0")
    );
    let merged = Merged::newest(dir.path());
    found.assert_merged(&merged);
    assert_eq!(
        merged.losses(),
        1,
        "one record tells of all that was removed"
    );
    assert_eq!(merged.thread_names(), ["host"]);
}

#[test]
fn keeping_the_first_stops_at_the_bound_says_so_and_counts_the_rest() {
    let dir = scratch();
    let host = Host::new(HOST).arguments(&["spans", "work", "200000"]);
    let host = host.recorded_in(dir.path()).variable(BOUND.0, BOUND.1);
    let _outcome = host.variable(FIRST.0, FIRST.1).run().quiet();
    assert!(disk_space(dir.path()).unwrap() <= 5 * MIB);
    assert_eq!(ring_files(dir.path()), Vec::<PathBuf>::new());
    let found = Found::in_dir(dir.path());
    found.assert_accounted(200_000);
    let kept = found.recorded();
    assert!(
        kept > 10_000 && found.work.iter().all(|work| work.index < kept),
        "the first {kept}"
    );
    found.assert_merged(&Merged::newest(dir.path()));
}

/// The last segment is full at the limit, beyond which the kernel answers with a deadly signal.
#[test]
fn keeping_the_first_below_a_limit_on_the_size_of_files_kills_nobody() {
    for limit in ["fsize=1048576", "fsize=1048500", "fsize=1000000"] {
        let dir = scratch();
        let arguments = ["--limit", limit, "spans", "work", "100000"];
        let host = Host::new(HOST)
            .arguments(&arguments)
            .recorded_in(dir.path());
        let host = host.variable(BOUND.0, BOUND.1);
        let _outcome = host.variable(FIRST.0, FIRST.1).run().quiet();
        let found = Found::in_dir(dir.path());
        found.assert_accounted(100_000);
        assert!(found.recorded() > 1000 && found.lost > 1000, "{limit}");
        found.assert_merged(&Merged::newest(dir.path()));
    }
}

#[test]
fn a_host_that_goes_on_after_its_finish_keeps_no_removed_segment() {
    for _ in 0..rounds(6) {
        let dir = scratch();
        let host = Host::new(HOST)
            .arguments(&["script"])
            .recorded_in(dir.path());
        let mut host = host.variable(BOUND.0, BOUND.1).start();
        host.ask("spans work 40000");
        host.ask("finish");
        // The helper may be closing one at this moment, which frees its blocks.
        let end = Instant::now() + Duration::from_secs(10);
        while !removed_but_open(host.pid()).is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(removed_but_open(host.pid()), Vec::<PathBuf>::new());
        let _outcome = host.end();
    }
}

fn removed_but_open(pid: u32) -> Vec<PathBuf> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let open = open
        .flatten()
        .filter_map(|fd| fs::read_link(fd.path()).ok());
    open.filter(|path| path.to_string_lossy().ends_with(".jsonl (deleted)"))
        .collect()
}

#[test]
fn keeping_the_first_and_killed_what_is_there_is_whole() {
    let mut victim = bounded(4, &[BOUND, FIRST]);
    wait_for_segments(&victim.directory(), 2);
    std::thread::sleep(Duration::from_millis(300));
    victim.kill().unwrap();
    assert!(disk_space(&victim.directory()).unwrap() <= 5 * MIB);
    let seen = Seen::by_second_reader(read_dir_as(&victim.directory()));
    assert_eq!(seen.damage, Vec::<String>::new());
    let merge = merged::merge(&victim.directory(), &victim.scratch("trace.json"));
    assert_eq!(merge.damage, Vec::<String>::new());
    assert_eq!(seen.spans.len(), merge.spans.len());
    let again = Seen::by_second_reader(read_dir_as(&victim.directory()));
    assert_eq!(
        (again.damage, again.spans.len()),
        (Vec::new(), seen.spans.len())
    );
}

/// Asserts that everything that was recorded is there or told as lost, by the second reader and the merge, before and after the merge settles it.
fn assert_told_twice(dir: &Path, did: u64) {
    for settled in [false, true] {
        let found = Found::in_dir(dir);
        found.assert_accounted(did);
        assert!(found.lost > 0, "settled: {settled}");
        found.assert_merged(&Merged::newest(dir));
    }
    assert_eq!(ring_files(dir), Vec::<PathBuf>::new());
}

#[test]
fn issue_19_a_kill_keeps_the_count_of_what_came_after_the_bound() {
    for (mode, did) in [
        (["killed", "work", "200000"], 200_000),
        (["threads-then-killed", "4", "60000"], 240_000),
    ] {
        let dir = scratch();
        let host = Host::new(HOST).arguments(&mode).recorded_in(dir.path());
        let host = host.variable(BOUND.0, BOUND.1);
        let _outcome = host.variable(FIRST.0, FIRST.1).run().was_killed();
        assert_told_twice(dir.path(), did);
    }
}

/// Each round a kill hits another instruction: of an event that is recorded, of one that is given up, or of a record that tells of those.
#[test]
fn issue_19_wherever_a_kill_comes_no_event_is_told_twice_or_not_at_all() {
    const THREADS: u64 = 4;
    let mut chance = Chance::new();
    let (seed, count) = (chance.seed, rounds(8));
    let mut lost = 0;
    for round in 0..count {
        let mut victim = bounded(4, &[BOUND, FIRST]);
        wait_for_segments(&victim.directory(), 3);
        std::thread::sleep(chance.pause(Duration::from_millis(1500)));
        victim.kill().unwrap();
        let acknowledged: u64 = snapshot(&victim.progress, 4).iter().sum();
        let merge = |name| merged::merge(&victim.directory(), &victim.scratch(name));
        let second = || Seen::by_second_reader(read_dir_as(&victim.directory()));
        for (reader, seen) in [
            ("second reader", second()),
            ("merge", merge("trace.json")),
            ("second reader of what is settled", second()),
            ("merge of what is settled", merge("again.json")),
        ] {
            let told = seen.spans.len() as u64 + seen.told_lost;
            assert!(
                (acknowledged..=acknowledged + THREADS).contains(&told),
                "round {round} of seed {seed}, {reader}: {told} of {acknowledged} are there or told"
            );
            assert_eq!(seen.damage, Vec::<String>::new(), "{reader}");
            lost += seen.told_lost;
        }
    }
    println!("BOUND first kills={count} seed={seed} lost={}", lost / 4);
    assert!(lost > 0);
}

#[test]
fn a_restart_moves_all_segments_of_the_crashed_run() {
    let dir = scratch();
    let host = |mode: &str, count: &str| {
        let host = Host::new(HOST)
            .arguments(&[mode, "work", count])
            .recorded_in(dir.path());
        host.variable(BOUND.0, BOUND.1).run()
    };
    host("killed", "200000");
    assert!(segments(dir.path()).len() > 2 && ring_files(dir.path()).len() == 1);
    let _next = host("spans", "100000").quiet();
    assert_eq!(previous_runs(dir.path()).len(), 1);
    let found = Found::in_previous(dir.path());
    found.assert_accounted(200_000);
    found.assert_merged(&Merged::previous(dir.path()));
    let next = Found::in_dir(dir.path());
    next.assert_accounted(100_000);
    next.assert_merged(&Merged::newest(dir.path()));
    assert!(disk_space(dir.path()).unwrap() <= 4 * MIB);
}

#[test]
fn what_somebody_removes_of_several_segments_is_told() {
    for all in [false, true] {
        let dir = scratch();
        let host = Host::new(HOST)
            .arguments(&["script"])
            .recorded_in(dir.path());
        let mut host = host.variable(BOUND.0, BOUND.1).start();
        host.ask("spans before 20000");
        host.ask("flush");
        let before = segments(dir.path());
        assert!(before.len() > 2);
        if all {
            fs::remove_dir_all(dir.path()).unwrap();
        } else {
            fs::remove_file(newest(dir.path()).unwrap().1).unwrap();
        }
        host.ask("spans after 5000");
        let _outcome = host.end();
        let found = Found::in_dir(dir.path());
        found.assert_accounted(25_000);
        assert!(
            found.lost > 0 && (found.lost == 20_000) == all,
            "{}",
            found.lost
        );
        found.assert_merged(&Merged::newest(dir.path()));
    }
}

#[test]
fn segments_avoid_a_limit_on_the_size_of_files() {
    let dir = scratch();
    let arguments = ["--limit", "fsize=1048576", "spans", "work", "50000"];
    let _outcome = Host::new(HOST)
        .arguments(&arguments)
        .recorded_in(dir.path())
        .run()
        .quiet();
    Found::in_dir(dir.path()).assert_exactly(&[("work", 50_000)]);
    assert!(segments(dir.path()).len() > 5);
}

#[test]
fn merging_a_run_at_full_rate_again_and_again_finds_no_damage() {
    let mut victim = bounded(4, &[BOUND]);
    for _ in 0..rounds(5) {
        let seen = merged::merge(&victim.directory(), &victim.scratch("trace.json"));
        assert_eq!(seen.damage, Vec::<String>::new());
        assert!(!seen.spans.is_empty());
    }
    victim.kill().unwrap();
}

/// Spans of a victim by thread and number, with their ends in ns.
type Ends = BTreeMap<(u64, u64), i64>;

/// The victim's spans in a merged trace, and the end of its newest event of any kind.
fn ends(dir: &Path, trace: PathBuf, window: Window) -> (Report, Ends, i64) {
    let options = Options {
        mode: Mode::Events(EventOptions {
            window,
            ..EventOptions::default()
        }),
        output: Output::File(trace.clone()),
        ..Options::new([dir.to_owned()])
    };
    let report = trace_merge::merge(&options).unwrap();
    let read: serde_json::Value = serde_json::from_slice(&fs::read(trace).unwrap()).unwrap();
    let events = read["traceEvents"].as_array().unwrap().iter();
    let events = events.filter(|event| event["ph"] != "M");
    let end_ns = |event: &serde_json::Value| {
        let ns = |key: &str| (event[key].as_f64().unwrap_or(0.0) * 1000.0).round() as i64;
        report.clocks.base_ns + ns("ts") + ns("dur")
    };
    let span = |event: &serde_json::Value| {
        let number = |key: &str| event["args"][key].as_u64();
        let key = (number("t")?, number("n")?);
        (event["ph"] == "X").then(|| (key, end_ns(event)))
    };
    let spans = events.clone().filter_map(span).collect();
    let newest_ns = events.map(end_ns).max().unwrap();
    (report, spans, newest_ns)
}

#[test]
fn the_last_part_of_a_bounded_run_is_what_a_filter_keeps() {
    let mut victim = bounded(4, &[BOUND]);
    wait_for_segments(&victim.directory(), 5);
    victim.kill().unwrap();
    let dir = victim.directory();
    let (_, mut whole, newest_ns) = ends(&dir, victim.scratch("trace.json"), Window::WholeRun);
    let mut by_time: Vec<i64> = whole.values().copied().collect();
    by_time.sort_unstable();
    let edge_ns = by_time[by_time.len() * 9 / 10];
    let last_ns = newest_ns - edge_ns;
    let last = Duration::from_nanos(last_ns.unsigned_abs());
    let (report, part, _) = ends(&dir, victim.scratch("last.json"), Window::Last(last));
    assert_eq!(report.damage.total, 0, "{report:?}");
    whole.retain(|_, end_ns| *end_ns >= edge_ns);
    let only = |these: &Ends, those: &Ends| {
        let these = these.iter().filter(|(key, _)| !those.contains_key(key));
        these
            .map(|(key, end_ns)| (*key, *end_ns - edge_ns))
            .collect::<Vec<((u64, u64), i64)>>()
    };
    let (missing, beyond) = (only(&whole, &part), only(&part, &whole));
    assert!(
        missing.is_empty() && beyond.is_empty(),
        "{} of {} missing: {:?}; {} beyond: {:?}",
        missing.len(),
        whole.len(),
        missing.first(),
        beyond.len(),
        beyond.first()
    );
}
