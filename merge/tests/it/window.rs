//! `--last`, `--from`, `--to` and `--around`, held against a naive filter of the whole trace.

use crate::hosts::fragment_on;
use crate::invocation::{Merged, RunDir, trace_merge};
use crate::links::run_of;
use crate::random::Rng;
use crate::trace::{content, ns, whole};
use crate::usage::{merges, refuses};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::Value;

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

/// Writes spans long enough to cross any edge. Spans of `random::write_own` last less than a thousandth of the run.
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

/// Two processes with an event each, on hosts whose monotonic clocks differ by a day, ten seconds apart by their wall clocks.
fn two_hosts() -> RunDir {
    let dir = RunDir::new();
    let day = 86_400_000_000_000;
    for (pid, host, monotonic_ns, wall_s) in [(50, "a", day, 100), (51, "b", 2 * day, 110)] {
        let process = Process {
            main: pid == 50,
            ..Process::new(pid)
        };
        let mut fragment = fragment_on(host, &process);
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
    let lines = "--last=1s left out: 2 events and 0 whole segments before the last 1s; 1 spans reach into it, marked sa_cut
--from=59s left out: 2 events and 0 whole segments before 59s from the start; 0 spans
--to=1.5s 3 events and 0 whole segments after 1.5s from the start; 1 spans reach into it, marked sa_cut
--around=60.5s±1s 2 events and 0 whole segments outside of 59.5s to 61.5s from the start; 1 spans";
    for line in lines.lines() {
        let (argument, said) = line.split_once(' ').unwrap();
        let ended = merges(trace_merge().arg(argument).arg(dir.path()));
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
}
