//! Windows of runs that are only partly read, compared with a naive filter of all that was
//! recorded.

use crate::full::cases;
use crate::invocation::{Merged, RunDir};
use crate::paced::{self, ANCHOR_MS, Course, End, PAUSE_MS, RUN_MS};
use crate::random::Rng;
use crate::trace::ns;
use crate::window::{Events, base_ns, comparable, end_ns, is_unfinished, naive, newest_ns, sorted};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const CASES: u64 = 25;
const MS: i64 = 1_000_000;

fn run(rng: &mut Rng, longest_ms: u64, pause_ms: Option<u64>) -> RunDir {
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

/// Returns a time of the run at which an anchor may just have been read, and may not be written
/// yet.
fn near_anchor_ms(rng: &mut Rng) -> i64 {
    let anchor = rng.next() % (RUN_MS / ANCHOR_MS);
    i64::try_from(anchor * ANCHOR_MS + rng.next() % 500).unwrap()
}

/// Returns true for an unfinished span that is recorded within the run and not at its end, because
/// its thread ended.
fn is_recorded_early(event: &Value) -> bool {
    let name = event["name"].as_str();
    name.is_some_and(|name| name.starts_with("begun"))
}

/// Returns true for a span that was open at the end of the run.
fn is_open(event: &Value) -> bool {
    is_unfinished(event) && !is_recorded_early(event)
}

/// Returns the events that a merge shows. Of events recorded early, only those that began in the
/// window are included.
fn shown(merged: &Merged, (from_ns, to_ns): (i64, i64), start_ns: i64) -> Events {
    let base_ns = base_ns(merged);
    let is_compared = |event: &&Value| {
        let at_ns = ns(&event["ts"]) + base_ns - start_ns;
        !is_recorded_early(event) || (from_ns..=to_ns).contains(&at_ns)
    };
    let shown = merged.trace.shown().filter(is_compared);
    sorted(shown.map(|event| comparable(event, base_ns)))
}

/// Returns the names of the threads that have events, by the names of their processes.
fn threads(merged: &Merged) -> BTreeMap<String, BTreeSet<String>> {
    let (processes, threads) = (merged.trace.process_names(), merged.trace.thread_names());
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for event in merged.trace.shown() {
        let (pid, tid) = (event["pid"].to_string(), event["tid"].to_string());
        let thread = threads.get(&format!("{pid}/{tid}"));
        // The number of extra lanes depends on the spans that are shown.
        let thread = thread.and_then(|name| name.split(" (overlapping").next());
        let process = named.entry(processes[&pid].clone()).or_default();
        process.insert(thread.map_or_else(|| format!("nameless {tid}"), str::to_owned));
    }
    named
}

/// Checks that a window contains exactly the events that a naive filter keeps.
fn check(dir: &RunDir, options: &[String], window: (i64, i64), what: &str) -> Merged {
    let whole = Merged::new(&["--no-settle"], &[dir.path()]);
    let found = merge(dir, options);
    let events = shown(&found, window, base_ns(&whole));
    let all = naive(whole.trace.shown(), base_ns(&whole), window, is_open);
    assert_eq!(events, all, "{what}");
    let all_threads = threads(&whole);
    for (process, names) in threads(&found) {
        let is_subset = names.is_subset(&all_threads[&process]);
        assert!(is_subset, "{what}: {names:?}");
    }
    if options.iter().all(|option| !option.starts_with("--last")) {
        let start_ns = &found.report.0["window"]["start_ns"];
        assert_eq!(*start_ns, base_ns(&whole), "{what}");
    }
    found
}

/// Returns the events that only `more` has.
fn lacking<'a>(some: &'a Events, more: &'a Events) -> impl Iterator<Item = &'a (String, bool)> {
    let is_lacking = |event: &&(String, bool)| some.binary_search(event).is_err();
    more.iter().filter(is_lacking)
}

fn merge(dir: &RunDir, options: &[String]) -> Merged {
    let options = options.iter().map(String::as_str);
    let options: Vec<&str> = options.chain(["--no-settle"]).collect();
    Merged::new(&options, &[dir.path()])
}

fn edges((from_ms, to_ms): (i64, i64)) -> [String; 2] {
    [format!("--from={from_ms}ms"), format!("--to={to_ms}ms")]
}

/// Changes a byte in a segment, after its first two lines. The byte is not a digit, so no time
/// changes.
fn harm(rng: &mut Rng, dir: &RunDir) {
    let files = std::fs::read_dir(dir.fragments()).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    files.sort();
    let path = &files[rng.below(files.len())];
    let mut text = std::fs::read(path).unwrap();
    let second = memchr::memchr_iter(b'\n', &text).nth(1).unwrap();
    let mut places = (second + 1..text.len()).cycle().skip(rng.below(text.len()));
    let at = places.find(|at| !text[*at].is_ascii_digit()).unwrap();
    text[at] ^= 1 << rng.below(7);
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_window_of_segments_is_what_a_naive_filter_keeps() {
    let mut unread = 0;
    for seed in 0..2 * cases(CASES) {
        let mut rng = Rng::new(seed);
        let dir = run(&mut rng, if seed % 4 == 3 { 40_000 } else { 5_000 }, None);
        let at_ms = near_anchor_ms(&mut rng);
        let to_ms = at_ms + 1 + i64::try_from(rng.next() % 10_000).unwrap();
        let [from, to] = edges((at_ms, to_ms));
        let (options, window) = match seed % 4 {
            0 => (vec![from], (MS * at_ms, i64::MAX)),
            1 => (vec![to], (i64::MIN, MS * to_ms)),
            2 => (vec![from, to], (MS * at_ms, MS * to_ms)),
            _ => {
                let last_ms = 3 * (to_ms - at_ms);
                let whole = Merged::new(&["--no-settle"], &[dir.path()]);
                let last = vec![format!("--last={last_ms}ms")];
                (last, (newest_ns(&whole) - MS * last_ms, i64::MAX))
            }
        };
        let what = format!("seed {seed} {options:?}");
        // Damage must not cost more than the damaged lines.
        let is_damaged = seed % 3 == 2;
        (0..if is_damaged { 3 } else { 0 }).for_each(|_| harm(&mut rng, &dir));
        let found = check(&dir, &options, window, &what);
        let damage = found.report.number("damage_total");
        assert!(is_damaged || damage == 0, "{what}: {damage}");
        let unread_bytes = &found.report.0["window"]["bytes_left_out"];
        unread += u64::from(unread_bytes.as_u64().unwrap() > 0);
        let one = [&options[..], &["--threads=1".to_owned()]].concat();
        assert_eq!(merge(&dir, &one).bytes, found.bytes, "{what}");
    }
    assert!(unread > cases(CASES), "{unread}");
}

/// Checks that a window contains all events that ended within the reach, and no events outside of
/// the window. Returns the number of missed events.
fn check_reach(dir: &RunDir, (from_ms, to_ms): (i64, i64), reach_ms: i64, what: &str) -> usize {
    let whole = Merged::new(&["--no-settle"], &[dir.path()]);
    let edges = edges((from_ms, to_ms));
    let reach = format!("--reach={reach_ms}ms");
    let merged = merge(dir, &[&edges[..], &[reach]].concat());
    let window = (MS * from_ms, MS * to_ms);
    let found = shown(&merged, window, base_ns(&whole));
    let all = || whole.trace.shown();
    let in_reach = |event: &&Value| end_ns(event) <= window.1 + MS * reach_ms;
    let in_reach = all().filter(|event| in_reach(event) && !is_recorded_early(event));
    let must = naive(in_reach, base_ns(&whole), window, is_open);
    let may = naive(all(), base_ns(&whole), window, is_open);
    assert_eq!(lacking(&found, &must).next(), None, "{what}: missing");
    assert_eq!(lacking(&may, &found).next(), None, "{what}: made up");
    may.len() - found.len()
}

#[test]
fn events_that_end_within_reach_are_found_and_none_invented() {
    let mut missed = 0;
    for seed in 0..cases(CASES) {
        let mut rng = Rng::new(1_000 + seed);
        let dir = run(&mut rng, 40_000, None);
        let at_ms = 2_000 + i64::try_from(rng.next() % (RUN_MS - 2_000)).unwrap();
        let window = (at_ms - 2_000, at_ms + 2_000);
        missed += check_reach(&dir, window, 3_000, &format!("seed {seed}"));
    }
    assert!(missed > 0, "all was read");
}

/// A line may be written long after it was recorded, in a segment that began after the end of the
/// window.
#[test]
fn lines_delayed_while_the_server_was_stopped_are_found() {
    for seed in 0..cases(CASES) {
        let mut rng = Rng::new(5_000 + seed);
        let pause_ms = 10_000 + rng.next() % 40_000;
        let dir = run(&mut rng, 40_000, Some(pause_ms));
        let at_ms = i64::try_from(pause_ms).unwrap();
        let what = format!("seed {seed}");
        let after_ms = at_ms + i64::try_from(PAUSE_MS).unwrap();
        for (from_ms, to_ms) in [(at_ms - 5_000, at_ms + 5_000), (after_ms - 100, after_ms)] {
            let window = (MS * from_ms, MS * to_ms);
            check(&dir, &edges((from_ms, to_ms)), window, &what);
        }
    }
}

#[test]
fn a_partly_read_run_is_settled_as_usual() {
    for seed in 0..10 {
        let [expected, found] =
            [&[][..], &["--from=20s", "--to=30s", "--reach=1s"]].map(|options| {
                let (mut rng, dir) = (Rng::new(3_000 + seed), RunDir::new());
                let course = Course {
                    end: End::Ring,
                    longest_ms: 5_000,
                    pause_ms: None,
                };
                paced::write(&mut rng, &dir, 100, course);
                Merged::new(options, &[dir.path()]);
                dir.merge().trace.comparable()
            });
        assert_eq!(found, expected, "seed {seed}");
    }
}
