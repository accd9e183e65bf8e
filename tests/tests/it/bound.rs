//! Bounded disk use: a process's segments stay within `SA_PROFILE_MAX_MB`, and after a kill at any moment, each segment is readable or reported as lost.

use crate::{host, victim};
use e2e::chance::{Chance, rounds};
use e2e::host_support::{
    Host, HostRecording, Merged, disk_space, ring_files, scratch, segments, status_kib,
};
use e2e::ledger::{Lack, Readout, Verdict, autopsy, snapshot};
use e2e::order::Pattern;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// The smallest possible bound: four segments.
const BOUND: (&str, &str) = ("SA_PROFILE_MAX_MB", "4");
const FIRST: (&str, &str) = ("SA_PROFILE_KEEP", "first");

fn bounded(dir: &Path, arguments: &[&str]) -> Host {
    host(dir, arguments).variable(BOUND.0, BOUND.1)
}

/// Returns the newest segment and its number.
fn newest(dir: &Path) -> Option<(u32, PathBuf)> {
    let numbered = segments(dir).into_iter().map(|path| {
        let stem = path.file_stem().unwrap().to_string_lossy();
        let number = stem.rsplit_once(".s").map(|(_, number)| number.parse());
        (number.map_or(0, Result::unwrap), path)
    });
    numbered.max()
}

/// Repeats an action until this many segments have been started.
fn until_segments(dir: &Path, count: u32, mut action: impl FnMut()) {
    let start = Instant::now();
    while newest(dir).is_none_or(|(number, _)| number < count) {
        let is_hanging = start.elapsed() > Duration::from_secs(60);
        assert!(!is_hanging, "segment {count} was never started");
        action();
    }
}

/// Returns the disk space of all segments at one moment, or `None` if segments appeared or disappeared during the measurement.
fn space(dir: &Path) -> Option<u64> {
    let before = segments(dir);
    let spaces = before.iter().map(|segment| disk_space(segment));
    let sum: Option<u64> = spaces.sum();
    sum.filter(|_| segments(dir) == before)
}

#[test]
fn threads_at_full_rate_stay_within_the_bound_and_a_kill_only_loses_whole_reported_segments() {
    let mut chance = Chance::new();
    let (mut all, mut most, mut samples) = (Verdict::default(), 0, 0);
    for round in 0..rounds(4, 30) {
        let mut victim = victim([1, 4, 8][round % 3], Pattern::Flat, &[BOUND]);
        let dir = victim.directory();
        until_segments(&dir, 9, || {
            if let Some(space) = space(&dir) {
                most = most.max(space);
                samples += 1;
            }
        });
        std::thread::sleep(chance.pause(Duration::from_millis(200)));
        victim.kill();
        all += autopsy(&victim, Lack::First);
    }
    println!(
        "BOUND 4 MiB seed={} samples={samples} most={most} bytes: {all:?}",
        chance.seed
    );
    assert!(samples > 20 && most <= 5 * MIB, "the bound and one segment");
    assert!(all.removed > 10_000 && all.is_clean(), "{all:?}");
}

#[test]
fn a_clean_exit_leaves_the_newest_segments_with_their_names_and_no_ring() {
    let dir = scratch();
    let line = "init, engine-settings 1, engine-settings 2, spans work 200000";
    let host = bounded(dir.path(), &["--lazy", line]);
    let _outcome = host.run().quiet();
    assert!(space(dir.path()).unwrap() <= 4 * MIB);
    assert_eq!(ring_files(dir.path()), Vec::<PathBuf>::new());
    let found = HostRecording::in_dir(dir.path());
    found.assert_accounted(200_000);
    assert!(found.lost > 100_000 && found.recorded() > 10_000);
    let numbers = found.header_values("segment");
    assert!(numbers.iter().all(|segment| segment != "0"));
    let merged = Merged::newest(dir.path());
    found.assert_merged(&merged);
    assert_eq!(
        merged.losses(),
        1,
        "one record reports all removed segments"
    );
    assert_eq!(merged.tracks_with("work"), ["host"].into());
    let settings: Vec<_> = merged.events_named("engine_settings").collect();
    assert!(!settings.is_empty());
    let is_last = |event: &&Value| event["args"]["max_num_seqs"] == 2;
    assert!(settings.iter().all(is_last), "{settings:?}");
}

/// Also runs with a limit on file sizes. The last segment ends at that limit, because the kernel would kill the process if it wrote beyond it.
#[test]
fn keeping_the_first_stops_at_the_bound_and_counts_the_rest() {
    for (limit, least) in [
        (u64::MAX, 10_000),
        (1_048_576, 1000),
        (1_048_500, 1000),
        (1_000_000, 1000),
    ] {
        let dir = scratch();
        let is_limited = limit < u64::MAX;
        let line = format!("limit fsize {limit}, init, spans work 100000");
        let host = bounded(dir.path(), &["--lazy", &line]);
        let _outcome = host.variable(FIRST.0, FIRST.1).run().quiet();
        assert!(space(dir.path()).unwrap() <= 5 * MIB);
        assert!(is_limited || ring_files(dir.path()).is_empty());
        let found = HostRecording::accounted(dir.path(), 100_000);
        let recorded = found.recorded();
        assert!(recorded > least && found.lost > 1000, "{limit}");
        let is_first = found.work.iter().all(|work| work.args.index < recorded);
        assert!(is_first || is_limited, "the first {recorded}");
    }
}

#[test]
fn a_host_that_continues_after_finish_keeps_no_removed_segment_open() {
    for _ in 0..rounds(2, 18) {
        let dir = scratch();
        let mut host = bounded(dir.path(), &["script"]).start();
        host.ask("spans work 40000, finish");
        // The recorder's thread may be closing a segment at this moment, which frees its blocks.
        let end = Instant::now() + Duration::from_secs(10);
        while !removed_but_open(host.pid()).is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(removed_but_open(host.pid()), Vec::<PathBuf>::new());
    }
}

fn removed_but_open(pid: u32) -> Vec<PathBuf> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let open = open.filter_map(|fd| fs::read_link(fd.path()).ok());
    open.filter(|path| path.to_string_lossy().ends_with(".jsonl (deleted)"))
        .collect()
}

/// In each round the kill hits a different moment: while an event is recorded or dropped, or while a record of dropped events is written.
#[test]
fn issue_19_after_a_kill_every_event_is_recorded_or_counted_exactly_once() {
    const THREADS: u64 = 4;
    let mut chance = Chance::new();
    let mut lost = 0;
    for _ in 0..rounds(3, 24) {
        let mut victim = victim(4, Pattern::Flat, &[BOUND, FIRST]);
        until_segments(&victim.directory(), 3, || {});
        std::thread::sleep(chance.pause(Duration::from_millis(1500)));
        victim.kill();
        let acknowledged: u64 = snapshot(&victim.progress, 4).iter().sum();
        let dir = victim.directory();
        for (reader, readout) in [
            ("oracle", Readout::by_oracle(&dir)),
            ("merge", Readout::by_merge(&dir)),
            ("oracle after settling", Readout::by_oracle(&dir)),
            ("merge after settling", Readout::by_merge(&dir)),
        ] {
            let accounted = readout.spans.len() as u64 + readout.reported_lost;
            let possible = acknowledged..=acknowledged + THREADS;
            let (is_right, seed) = (possible.contains(&accounted), chance.seed);
            assert!(
                is_right,
                "{reader}: {accounted} of {acknowledged}, seed {seed}"
            );
            assert_eq!(readout.damage, Vec::<String>::new(), "{reader}");
            lost += readout.reported_lost;
        }
    }
    assert!(lost > 0);
}

/// Bound, number of spans before the removal, the removal, and range of possible losses.
type Removal<'a> = (&'a str, u64, &'a dyn Fn(&Path), [u64; 2]);

#[test]
fn removed_files_are_reported_and_counting_them_uses_little_memory() {
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    let remove_all: fn(&Path) = |dir| fs::remove_dir_all(dir).unwrap();
    let newest_one = |dir: &Path| remove(&newest(dir).unwrap().1);
    let all_segments = |dir: &Path| segments(dir).iter().for_each(|path| remove(path));
    let rings = |dir: &Path| ring_files(dir).iter().for_each(|path| remove(path));
    let cases: [Removal; 5] = [
        ("4", 20_000, &newest_one, [1, 19_999]),
        ("4", 20_000, &remove_all, [20_000; 2]),
        ("", 600_000, &all_segments, [600_000; 2]),
        ("", 100, &all_segments, [0, 100]),
        ("", 100, &rings, [0; 2]),
    ];
    for (bound, before, remove, [least, most]) in cases {
        let dir = scratch();
        let host = host(dir.path(), &["script"]);
        let mut host = host.variable(BOUND.0, bound).start();
        host.ask(&format!("spans before {before}"));
        if before > 100 {
            host.ask("flush");
        }
        remove(dir.path());
        host.ask("spans after 5000, flush");
        std::thread::sleep(Duration::from_millis(1500));
        let peak_kib = status_kib(host.pid(), "VmHWM:");
        assert!(peak_kib < 32 << 10, "{peak_kib} KiB");
        host.ask("spans later 5000");
        let _outcome = host.end();
        let found = HostRecording::accounted(dir.path(), before + 10_000);
        assert!(
            (least..=most).contains(&found.lost),
            "{before}: {}",
            found.lost
        );
    }
}
