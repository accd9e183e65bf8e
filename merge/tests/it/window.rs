//! `--last`, `--from`, `--to` and `--around`, held against a naive filter of the whole trace.

use crate::full::cases;
use crate::invocation::{Merged, RunDir, trace_merge};
use crate::links::run_of;
use crate::random::{Rng, write_foreign, write_own};
use crate::rows::assert_rows_nest;
use crate::trace::{content, ns, whole};
use crate::usage::{merges, refuses};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::Value;

const CASES: u64 = 150;

/// Events with their times on the host's axis, sorted, and whether they are marked as cut.
pub(crate) type Events = Vec<(String, bool)>;

pub(crate) fn base_ns(merged: &Merged) -> i64 {
    merged.report.0["base_ns"].as_i64().unwrap()
}

pub(crate) fn end_ns(event: &Value) -> i64 {
    let dur_ns = if event["ph"] == "X" {
        ns(&event["dur"])
    } else {
        0
    };
    ns(&event["ts"]) + dur_ns
}

/// Returns an event's content, with its time on an axis that does not depend on the window, and true if the event is marked as cut.
pub(crate) fn comparable(event: &Value, base_ns: i64) -> (String, bool) {
    let (event, cut) = whole(event);
    let ts_ns = ns(&event["ts"]) + base_ns;
    (content(&event, ts_ns), cut)
}

/// Writes spans long enough to cross any edge. Spans of `write_own` last less than a thousandth of the run.
pub(crate) fn write_long(rng: &mut Rng, dir: &RunDir) {
    let process = Process::new(300);
    let (on, mut fragment) = (process.main_thread(), process.fragment());
    let lines = [(); 10].map(|()| {
        let ts_ns = 5_000_000_000 + rng.next() % 900_000_000;
        on.span(ts_ns, rng.next() % 500_000_000, "long", "")
    });
    fragment.block(1, 0, &stream(&lines));
    fragment.write_here(&dir.fragments());
}

/// Returns the events of a whole trace that are in a window, marked where they cross an edge. The window is in ns from the start of the trace.
pub(crate) fn naive<'a>(
    events: impl Iterator<Item = &'a Value>,
    base_ns: i64,
    (from_ns, to_ns): (i64, i64),
    is_open: impl Fn(&Value) -> bool,
) -> Events {
    let is_kept =
        |event: &&Value| ns(&event["ts"]) <= to_ns && (end_ns(event) >= from_ns || is_open(event));
    let mark = |event: &Value| {
        let (text, _) = comparable(event, base_ns);
        let crosses = ns(&event["ts"]) < from_ns || end_ns(event) > to_ns;
        (text, event["ph"] == "X" && crosses)
    };
    sorted(events.filter(is_kept).map(mark))
}

pub(crate) fn sorted(events: impl Iterator<Item = (String, bool)>) -> Events {
    let mut events: Events = events.collect();
    events.sort_unstable();
    events
}

/// Returns true for an unfinished span.
pub(crate) fn is_unfinished(event: &Value) -> bool {
    event["args"]["unfinished"] == true
}

/// Returns the end of the newest event, in ns from the begin of the trace.
pub(crate) fn newest_ns(merged: &Merged) -> i64 {
    merged.trace.shown().map(end_ns).max().unwrap()
}

/// Options for a window of the run, and its edges in ns from the start.
fn window(rng: &mut Rng, case: u64, newest_ns: i64) -> (Vec<String>, i64, i64) {
    let us = |rng: &mut Rng| i64::try_from(1 + rng.below(900_000)).unwrap();
    let (one, other) = (us(rng), us(rng));
    let (from, to) = (one.min(other), one.max(other));
    let (from_arg, to_arg) = (format!("--from={from}us"), format!("--to={to}us"));
    match case % 5 {
        0 => (vec![from_arg], 1000 * from, i64::MAX),
        1 => (vec![to_arg], i64::MIN, 1000 * to),
        2 => (vec![from_arg, to_arg], 1000 * from, 1000 * to),
        3 => {
            let last = format!("--last={from}us");
            (vec![last], newest_ns - 1000 * from, i64::MAX)
        }
        _ => {
            let side = us(rng) / 10 + 1;
            let argument = format!("--around={one}us±{side}us");
            (vec![argument], 1000 * (one - side), 1000 * (one + side))
        }
    }
}

#[test]
fn any_window_is_what_a_naive_filter_keeps() {
    let (mut cut, mut left_out) = (0, 0);
    for seed in 0..cases(CASES) {
        let mut rng = Rng::new(seed);
        let dir = RunDir::new();
        for pid in 100..103 {
            write_own(&mut rng, &dir.fragments(), pid, true);
        }
        write_foreign(&mut rng, &dir.fragments(), 200, 40, true);
        write_long(&mut rng, &dir);
        let whole = Merged::of(&["--no-settle"], &[dir.path()]);
        let (arguments, from_ns, to_ns) = window(&mut rng, seed, newest_ns(&whole));
        let what = format!("seed {seed} {arguments:?}");
        let mut options = vec!["--no-settle"];
        options.extend(arguments.iter().map(String::as_str));
        let found = Merged::of(&options, &[dir.path()]);
        let expected = naive(
            whole.trace.shown(),
            base_ns(&whole),
            (from_ns, to_ns),
            is_unfinished,
        );
        let shown = found.trace.shown();
        let shown = sorted(shown.map(|event| comparable(event, base_ns(&found))));
        assert_eq!(shown, expected, "{what}");
        assert_rows_nest(&found, &what);
        let report = &found.report.0["window"];
        let marked = expected.iter().filter(|(_, cut)| *cut).count();
        assert_eq!(report["spans_cut"], marked, "{what}");
        assert_eq!(report["start_ns"], base_ns(&whole), "{what}");
        let edge = |ns: i64| (ns.unsigned_abs() < 1 << 62).then_some(ns);
        let edges = [&report["from_ns"], &report["to_ns"]].map(Value::as_i64);
        assert_eq!(edges, [edge(from_ns), edge(to_ns)], "{what}");
        let all = [&whole, &found].map(|merged| merged.report.number("events_total"));
        assert_eq!(report["events_left_out"], all[0] - all[1], "{what}");
        assert_eq!(found.trace.document["otherData"]["window"], *report);
        for threads in ["1", "3"] {
            let again = [options.as_slice(), &["--threads", threads]].concat();
            let again = Merged::of(&again, &[dir.path()]);
            assert!(again.bytes == found.bytes, "{what}");
        }
        cut += marked;
        left_out += all[0] - all[1];
    }
    let seen = 3 * cut as u64 > cases(CASES) && left_out > 17 * cases(CASES);
    assert!(seen, "{cut} {left_out}");
}

/// Two processes with an event each, on hosts whose monotonic clocks differ by a day, ten seconds apart by their wall clocks.
fn two_hosts() -> RunDir {
    let dir = RunDir::new();
    let day = 86_400_000_000_000;
    for (pid, host, monotonic_ns, wall_s) in [(50, "a", day, 100), (51, "b", 2 * day, 110)] {
        let process = Process {
            main: pid == 50,
            ..Process::new(pid)
        };
        let mut fragment = process.fragment();
        let header = String::from_utf8(fragment.bytes).unwrap();
        let header = header.replace("node-3", host).replace("0b1f7a3e", host);
        fragment.bytes = header.into_bytes();
        fragment.line(&format!(
            r#"{{"ph":"M","pid":{pid},"tid":{pid},"name":"sa_anchor","args":{{"monotonic_ns":{monotonic_ns},"realtime_ns":{},"uncertainty_ns":10}}}}"#,
            wall_s * 1_000_000_000_u64
        ));
        let on = process.main_thread();
        let line = on.instant(monotonic_ns, &format!("on {host}"), "");
        fragment.block(1, 0, &stream(&[line]));
        fragment.write_here(&dir.fragments());
    }
    dir
}

#[test]
fn wall_times_are_placed_by_anchors() {
    let dir = two_hosts();
    for (arguments, expected) in [
        (["--from=1970-01-01T00:01:45Z", "-q"], &["on b"][..]),
        (["--to=1970-01-01T02:01:45+02:00", "-q"], &["on a"]),
        (["--to=1970-01-01T00:01:50Z", "-q"], &["on a", "on b"]),
        (["--around=1970-01-01T00:01:49Z±2s", "-q"], &["on b"]),
        (["--around=1s", "--threads=1"], &["on a"]),
        (["--from=0s", "--to=10s"], &["on a", "on b"]),
    ] {
        let merged = Merged::of(&arguments, &[dir.path()]);
        assert_eq!(merged.trace.names(), expected, "{arguments:?}");
    }
}

#[test]
fn a_window_that_cannot_be_is_refused() {
    let dir = two_hosts();
    let lasts = "0s (1970-01-01T00:01:40Z) to 10s (1970-01-01T00:01:50Z)";
    let before = "ends at -1s (1970-01-01T00:01:39Z)";
    let length = "30s, 500ms or 2m";
    let together = "cannot be used with";
    for (arguments, says) in [
        ("--from=11s", &[lasts, "begins at 11s"][..]),
        ("--to=1970-01-01T00:01:39Z", &[lasts, before]),
        ("--from=3s --to=2.5s", &["found 3s (", "to 2.5s ("]),
        ("--from=noon", &["12.5s", "\"noon\""]),
        ("--around=1s±0s", &["\"0s\""]),
        ("--last=30", &[length]),
        ("--last=-1s", &[length]),
        ("--last=0s", &[length]),
        ("--last=soon", &[length]),
        ("--last=1s --from=1s", &[together]),
        ("--around=1s --to=2s", &[together]),
        ("--verbatim --from=1s", &[together]),
        ("--verbatim --last=1s", &[together]),
    ] {
        let mut merge = trace_merge();
        refuses(merge.args(arguments.split(' ')).arg(dir.path()), says);
    }
    let dir = RunDir::new();
    dir.put(
        "9",
        br#"{"ph":"i","pid":9,"tid":9,"ts":5.0,"s":"t","name":"a"}"#,
    );
    let mut merge = trace_merge();
    let says = ["--from", "no fragment says what its wall time was"];
    refuses(
        merge.arg("--from=2026-11-22T07:30:00Z").arg(dir.path()),
        &says,
    );
    assert!(!dir.path().join("trace.json").exists());
}

/// Writes two processes. The first one ends long before the second.
fn run() -> RunDir {
    run_of(&[(70, 1), (71, 60)].map(|(pid, second)| {
        let process = Process::new(pid);
        let (on, at) = (process.main_thread(), second * 1_000_000_000);
        let lines = vec![
            on.span(at, 2_000_000_000, "long", ""),
            on.instant(at + 2_500_000_000, "late", ""),
        ];
        (process, lines)
    }))
}

#[test]
fn the_report_says_which_window_it_was() {
    let dir = run();
    for (argument, said) in [
        (
            "--last=1s",
            "left out: 2 events and 0 whole segments before the last 1s; 1 spans reach into it, marked sa_cut",
        ),
        (
            "--from=59s",
            "left out: 2 events and 0 whole segments before 59s from the start; 0 spans",
        ),
        (
            "--to=1.5s",
            "3 events and 0 whole segments after 1.5s from the start; 1 spans reach into it, marked sa_cut",
        ),
        (
            "--around=60.5s±1s",
            "2 events and 0 whole segments outside of 59.5s to 61.5s from the start; 1 spans",
        ),
    ] {
        let ended = merges(trace_merge().arg(argument).arg(dir.path()));
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
}
