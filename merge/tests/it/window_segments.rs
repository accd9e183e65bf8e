//! Windows of runs that are not read whole, held against a naive filter of all that was recorded.

use crate::full::cases;
use crate::invocation::{Ended, Merged, RunDir, trace_merge};
use crate::last::{base_ns, comparable, end_ns};
use crate::paced::{self, ANCHOR_MS, Course, End, PAUSE_MS, RUN_MS};
use crate::random::Rng;
use crate::trace::ns;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const CASES: u64 = 25;
const MS: i64 = 1_000_000;

fn run(rng: &mut Rng, longest_ms: u64) -> RunDir {
    paused_run(rng, longest_ms, None)
}

fn paused_run(rng: &mut Rng, longest_ms: u64, pause_ms: Option<u64>) -> RunDir {
    let dir = RunDir::new();
    for pid in [100, 200, 300] {
        let course = Course {
            end: [End::Clean, End::Ring, End::Lost][rng.below(3)],
            longest_ms,
            pause_ms,
        };
        paced::write(rng, &dir, pid, course);
    }
    dir
}

/// A time of the run at which an anchor may just have been read, and may not be written yet.
fn near_anchor_ms(rng: &mut Rng) -> i64 {
    let anchor = rng.next() % (RUN_MS / ANCHOR_MS);
    i64::try_from(anchor * ANCHOR_MS + rng.next() % 500).unwrap()
}

/// Events with their times on the host's axis, and whether they are marked.
type Events = BTreeSet<(String, bool)>;

/// Whether an unfinished span is told somewhere within the run, and not at its end: when its thread ended.
fn is_told_early(event: &Value) -> bool {
    let name = event["name"].as_str();
    name.is_some_and(|name| name.starts_with("begun"))
}

/// What a merge shows; of what was told early, only what began in the window.
fn shown(merged: &Merged, (from_ns, to_ns): (i64, i64), start_ns: i64) -> Events {
    let base_ns = base_ns(merged);
    let is_compared = |event: &&Value| {
        let at_ns = ns(&event["ts"]) + base_ns - start_ns;
        !is_told_early(event) || (from_ns..=to_ns).contains(&at_ns)
    };
    let shown = merged.trace.shown().filter(is_compared);
    shown.map(|event| comparable(event, base_ns)).collect()
}

/// What of the whole trace lies in a window in ns from its begin, marked where it crosses an edge.
fn naive(whole: &Merged, (from_ns, to_ns): (i64, i64), keeps: impl Fn(&Value) -> bool) -> Events {
    let is_within = |event: &&Value| {
        let is_open = event["args"]["unfinished"] == true && !is_told_early(event);
        let (start, end) = (ns(&event["ts"]), end_ns(event));
        start <= to_ns && (end >= from_ns || is_open) && keeps(event)
    };
    let mark = |event: &Value| {
        let (text, _) = comparable(event, base_ns(whole));
        let crosses = ns(&event["ts"]) < from_ns || end_ns(event) > to_ns;
        (text, event["ph"] == "X" && crosses)
    };
    whole.trace.shown().filter(is_within).map(mark).collect()
}

/// The names of the threads that have events, by the names of their processes.
fn threads(merged: &Merged) -> BTreeMap<String, BTreeSet<String>> {
    let (processes, threads) = (merged.trace.process_names(), merged.trace.thread_names());
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for event in merged.trace.shown() {
        let (pid, tid) = (event["pid"].to_string(), event["tid"].to_string());
        let thread = threads.get(&format!("{pid}/{tid}"));
        // How many rows overlapping spans take depends on which spans there are.
        let thread = thread.and_then(|name| name.split(" (overlapping").next());
        let process = named.entry(processes[&pid].clone()).or_default();
        process.insert(thread.map_or_else(|| format!("nameless {tid}"), str::to_owned));
    }
    named
}

#[test]
fn a_window_of_segments_is_what_a_naive_filter_keeps() {
    let mut unread = 0;
    for seed in 0..cases(CASES) {
        let mut rng = Rng::new(seed);
        let dir = run(&mut rng, 5_000);
        let whole = Merged::of(&["--no-settle"], &[dir.path()]);
        let at_ms = near_anchor_ms(&mut rng);
        let (from_ms, to_ms) = (
            at_ms,
            at_ms + 1 + i64::try_from(rng.next() % 10_000).unwrap(),
        );
        let (from, to) = (format!("--from={from_ms}ms"), format!("--to={to_ms}ms"));
        let asked: &[&str] = match seed % 3 {
            0 => &[&from],
            1 => &[&to],
            _ => &[&from, &to],
        };
        let edges = [
            (from_ms, i64::MAX / MS),
            (i64::MIN / MS, to_ms),
            (from_ms, to_ms),
        ];
        let (from_ms, to_ms) = edges[usize::try_from(seed % 3).unwrap()];
        let window = (MS * from_ms, MS * to_ms);
        let what = format!("seed {seed} {asked:?}");
        let found = Merged::of(&[asked, &["--no-settle"]].concat(), &[dir.path()]);
        let expected = naive(&whole, window, |_| true);
        assert_eq!(shown(&found, window, base_ns(&whole)), expected, "{what}");
        let report = &found.report.0;
        assert_eq!(report["damage_total"], 0, "{what}: {}", report["damage"]);
        assert_eq!(report["window"]["start_ns"], base_ns(&whole), "{what}");
        for (process, names) in threads(&found) {
            assert!(
                names.is_subset(&threads(&whole)[&process]),
                "{what}: {names:?}"
            );
        }
        unread += u64::from(report["window"]["bytes_left_out"].as_u64().unwrap() > 0);
        let again = [asked, &["--no-settle", "--threads=1"]].concat();
        assert_eq!(
            Merged::of(&again, &[dir.path()]).bytes,
            found.bytes,
            "{what}"
        );
    }
    assert!(unread > cases(CASES) / 2, "{unread}");
}

/// Checks a window: what ended within the reach must be found, and nothing may that does not lie in the window. Gives how many events were missed.
fn check_reach(dir: &RunDir, (from_ms, to_ms): (i64, i64), reach_ms: i64, what: &str) -> usize {
    let whole = Merged::of(&["--no-settle"], &[dir.path()]);
    let asked = [
        format!("--from={from_ms}ms"),
        format!("--to={to_ms}ms"),
        format!("--reach={reach_ms}ms"),
    ];
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    let merged = Merged::of(&[&asked[..], &["--no-settle"]].concat(), &[dir.path()]);
    let report = &merged.report.0;
    assert_eq!(report["damage_total"], 0, "{what}: {}", report["damage"]);
    let window = (MS * from_ms, MS * to_ms);
    let found = shown(&merged, window, base_ns(&whole));
    let in_reach = |event: &Value| end_ns(event) <= window.1 + MS * reach_ms;
    let must = naive(&whole, window, |event| {
        in_reach(event) && !is_told_early(event)
    });
    let may = naive(&whole, window, |_| true);
    let missing: Vec<_> = must.difference(&found).take(2).collect();
    assert!(missing.is_empty(), "{what}: {missing:?}");
    let made_up: Vec<_> = found.difference(&may).take(2).collect();
    assert!(made_up.is_empty(), "{what}: {made_up:?}");
    may.len() - found.len()
}

#[test]
fn what_ended_within_the_reach_is_found_and_nothing_else_is_made_up() {
    let mut missed = 0;
    for seed in 0..cases(CASES) {
        let mut rng = Rng::new(1_000 + seed);
        let dir = run(&mut rng, 40_000);
        let at_ms = 2_000 + i64::try_from(rng.next() % (RUN_MS - 2_000)).unwrap();
        let window = (at_ms - 2_000, at_ms + 2_000);
        missed += check_reach(&dir, window, 3_000, &format!("seed {seed}"));
    }
    assert!(missed > 0, "all was read");
}

/// A line may be written long after it was recorded, in a segment that began later than the window ends.
#[test]
fn lines_that_waited_while_the_server_was_stopped_are_found() {
    for seed in 0..cases(CASES) {
        let mut rng = Rng::new(5_000 + seed);
        let pause_ms = 10_000 + rng.next() % 40_000;
        let dir = paused_run(&mut rng, 40_000, Some(pause_ms));
        let at_ms = i64::try_from(pause_ms).unwrap();
        let what = format!("seed {seed}");
        check_window(&dir, (at_ms - 5_000, at_ms + 5_000), &what);
        let after_ms = at_ms + i64::try_from(PAUSE_MS).unwrap();
        check_window(&dir, (after_ms - 100, after_ms), &what);
    }
}

/// Checks that a window contains exactly the events that a naive filter keeps.
fn check_window(dir: &RunDir, (from_ms, to_ms): (i64, i64), what: &str) {
    let whole = Merged::of(&["--no-settle"], &[dir.path()]);
    let edges = [format!("--from={from_ms}ms"), format!("--to={to_ms}ms")];
    let merged = Merged::of(&["--no-settle", &edges[0], &edges[1]], &[dir.path()]);
    let report = &merged.report.0;
    assert_eq!(report["damage_total"], 0, "{what}: {}", report["damage"]);
    let window = (MS * from_ms, MS * to_ms);
    let found = shown(&merged, window, base_ns(&whole));
    assert_eq!(found, naive(&whole, window, |_| true), "{what}");
}

#[test]
fn the_last_part_is_read_in_segments() {
    let mut unread = 0;
    for seed in 0..cases(CASES) {
        let mut rng = Rng::new(2_000 + seed);
        let dir = run(&mut rng, 40_000);
        let whole = Merged::of(&["--no-settle"], &[dir.path()]);
        let last_ms = 1 + i64::try_from(rng.next() % 30_000).unwrap();
        let last = format!("--last={last_ms}ms");
        let found = Merged::of(&[&last, "--no-settle"], &[dir.path()]);
        let newest_ns = whole.trace.shown().map(end_ns).max().unwrap();
        let window = (newest_ns - MS * last_ms, i64::MAX);
        let expected = naive(&whole, window, |_| true);
        let found_events = shown(&found, window, base_ns(&whole));
        assert_eq!(found_events, expected, "seed {seed} {last}");
        let report = &found.report.0;
        assert_eq!(
            report["damage_total"], 0,
            "seed {seed}: {}",
            report["damage"]
        );
        unread += u64::from(report["window"]["bytes_left_out"].as_u64().unwrap() > 0);
    }
    assert!(unread > cases(CASES) / 2, "{unread}");
}

/// Changes bytes in a segment, behind its first two lines; gives the times in the lines that were changed, before and after.
fn harm(rng: &mut Rng, dir: &RunDir, bytes: usize) -> BTreeSet<i64> {
    let files = std::fs::read_dir(dir.fragments()).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    files.sort();
    let path = &files[rng.below(files.len())];
    let mut text = std::fs::read(path).unwrap();
    let whole = text.clone();
    let second = memchr::memchr_iter(b'\n', &text).nth(1).unwrap();
    let mut places = Vec::new();
    for _ in 0..bytes {
        let at = second + 1 + rng.below(text.len() - second - 1);
        text[at] ^= 1 << rng.below(7);
        places.push(at);
    }
    let times = places
        .iter()
        .flat_map(|at| [time_at(&whole, *at), time_at(&text, *at)]);
    let times = times.flatten().collect();
    std::fs::write(path, text).unwrap();
    times
}

/// The time of the event whose line has a byte.
fn time_at(text: &[u8], at: usize) -> Option<i64> {
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |newline| newline + 1);
    let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |len| at + len);
    let event: Value = serde_json::from_slice(text.get(start..end)?).ok()?;
    event["ts"].as_f64()?;
    Some(ns(&event["ts"]))
}

#[test]
fn damage_costs_no_more_than_what_is_damaged() {
    let mut differing = 0;
    for seed in 0..4 * cases(CASES) {
        let mut rng = Rng::new(4_000 + seed);
        let dir = run(&mut rng, 5_000);
        let damaged = harm(&mut rng, &dir, 3);
        let whole = Merged::of(&["--no-settle"], &[dir.path()]);
        let from_ms = near_anchor_ms(&mut rng);
        let around = format!("--around={from_ms}ms±3s");
        let found = Merged::of(&[&around, "--no-settle"], &[dir.path()]);
        let window = (MS * (from_ms - 3_000), MS * (from_ms + 3_000));
        let expected = naive(&whole, window, |_| true);
        let found = shown(&found, window, base_ns(&whole));
        // A changed time may have moved an event far from where it stands.
        for (event, _) in expected.symmetric_difference(&found) {
            let value: Value = serde_json::from_str(event).unwrap();
            let offsets = [0, 7_000].map(|offset| value["ts_ns"].as_i64().unwrap() + offset);
            let is_damaged = offsets.iter().any(|ts_ns| damaged.contains(ts_ns));
            assert!(is_damaged, "seed {seed}: {event}");
            differing += 1;
        }
    }
    eprintln!("{differing} damaged events differ");
}

#[test]
fn a_run_of_which_a_window_was_read_is_settled_as_ever() {
    for seed in 0..10 {
        let settled = |options: &[&str]| {
            let mut rng = Rng::new(3_000 + seed);
            let dir = RunDir::new();
            let course = Course {
                end: End::Ring,
                longest_ms: 5_000,
                pause_ms: None,
            };
            paced::write(&mut rng, &dir, 100, course);
            let first = Merged::of(options, &[dir.path()]);
            (Merged::of(&[], &[dir.path()]).trace.comparable(), first)
        };
        let (expected, _) = settled(&[]);
        let (found, _) = settled(&["--from=20s", "--to=30s", "--reach=1s"]);
        assert_eq!(found, expected, "seed {seed}");
    }
}

#[test]
fn a_reach_needs_a_window_and_is_reported() {
    let mut rng = Rng::new(7);
    let dir = run(&mut rng, 40_000);
    let ended = Ended::of(trace_merge().arg("--reach=1s").arg(dir.path()));
    assert!(
        ended.code == 2 && ended.stderr.contains("--from <TIME>|--to <TIME>|--around"),
        "{}",
        ended.stderr
    );
    let mut command = trace_merge();
    command.args(["--around=60s±1s", "--reach=2s", "--no-settle"]);
    let ended = Ended::of(command.arg(dir.path()));
    let said = "looked for up to 2s after it; see --reach";
    assert!(
        ended.code == 0 && ended.stderr.contains(said),
        "{}",
        ended.stderr
    );
}
