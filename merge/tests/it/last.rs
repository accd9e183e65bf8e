//! `--last`: the last part of a run, held against a naive filter of the whole trace.

use crate::invocation::{Ended, Merged, RunDir, trace_merge};
use crate::random::{Rng, write_foreign, write_own};
use crate::trace::{content, ns, whole};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::Value;

const CASES: u64 = 60;

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

/// What of an event tells it from others, on the axis that does not depend on what is shown; and whether it is marked as cut.
pub(crate) fn comparable(event: &Value, base_ns: i64) -> (String, bool) {
    let (event, cut) = whole(event);
    let ts_ns = ns(&event["ts"]) + base_ns;
    (content(&event, ts_ns), cut)
}

fn naive(whole: &Merged, last_ns: i64) -> Vec<(String, bool)> {
    let newest_ns = whole.trace.shown().map(end_ns).max().unwrap();
    let edge_ns = newest_ns - last_ns;
    let is_kept = |event: &&Value| end_ns(event) >= edge_ns || event["args"]["unfinished"] == true;
    let kept = whole.trace.shown().filter(is_kept);
    let mut kept: Vec<_> = kept
        .map(|event| {
            let (text, _) = comparable(event, base_ns(whole));
            (text, event["ph"] == "X" && ns(&event["ts"]) < edge_ns)
        })
        .collect();
    kept.sort_unstable();
    kept
}

/// Writes spans that reach over any edge; those of `write_own` last less than a thousandth of the run.
pub(crate) fn write_long(rng: &mut Rng, dir: &RunDir) {
    let process = Process::new(300);
    let (on, mut fragment) = (process.main_thread(), process.fragment());
    let lines: Vec<String> = (0..10)
        .map(|_| {
            let ts_ns = 5_000_000_000 + rng.next() % 900_000_000;
            on.span(ts_ns, rng.next() % 500_000_000, "long", "")
        })
        .collect();
    fragment.block(1, 0, &stream(&lines));
    fragment.write_here(&dir.fragments());
}

#[test]
fn the_window_is_what_a_naive_filter_keeps() {
    let (mut cut, mut left_out) = (0, 0);
    for seed in 0..CASES {
        let mut rng = Rng::new(seed);
        let dir = RunDir::new();
        for pid in 100..103 {
            write_own(&mut rng, &dir.fragments(), pid, true);
        }
        write_foreign(&mut rng, &dir.fragments(), 200, 40, true);
        write_long(&mut rng, &dir);
        let last_us = 1 + rng.below(1_000_000);
        let whole = Merged::of(&["--no-settle"], &[dir.path()]);
        let last = format!("{last_us}us");
        let window = Merged::of(&["--no-settle", "--last", &last], &[dir.path()]);
        let found = window
            .trace
            .shown()
            .map(|event| comparable(event, base_ns(&window)));
        let mut found: Vec<_> = found.collect();
        found.sort_unstable();
        let expected = naive(&whole, i64::try_from(last_us).unwrap() * 1000);
        assert_eq!(found, expected, "seed {seed} last {last}");
        let report = &window.report.0["window"];
        assert_eq!(
            report["spans_cut"],
            found.iter().filter(|(_, cut)| *cut).count(),
            "seed {seed}"
        );
        assert_eq!(report["last_ns"], last_us * 1000);
        let all = [&whole, &window].map(|merged| merged.report.number("events_total"));
        assert_eq!(report["events_left_out"], all[0] - all[1], "seed {seed}");
        let added = window.report.number("events_added");
        assert_eq!(window.trace.events.len() as u64, all[1] + added);
        cut += report["spans_cut"].as_u64().unwrap();
        left_out += report["events_left_out"].as_u64().unwrap();
    }
    assert!(cut > 20 && left_out > 1000, "{cut} {left_out}");
}

/// Two processes, one of which ended long before the other.
pub(crate) fn run() -> RunDir {
    let dir = RunDir::new();
    for (pid, second) in [(70, 1_u64), (71, 60)] {
        let process = Process::new(pid);
        let on = process.main_thread();
        let mut fragment = process.fragment();
        let at = second * 1_000_000_000;
        let lines = [
            on.metadata("process_name", &format!(r#""name":"p{pid}""#)),
            on.span(at, 2_000_000_000, &format!("long {pid}"), ""),
            on.instant(at + 2_500_000_000, &format!("late {pid}"), ""),
        ];
        fragment.block(1, 0, &stream(&lines));
        fragment.write_here(&dir.fragments());
    }
    dir
}

#[test]
fn the_newest_event_of_all_processes_ends_the_window() {
    let merged = Merged::of(&["--last", "1s"], &[run().path()]);
    assert_eq!(merged.trace.names(), ["late 71", "long 71"]);
    let long = merged.trace.named("long 71");
    assert_eq!(long["args"]["sa_cut"], true);
    let times = |event: &Value| [ns(&event["ts"]), ns(&event["dur"])];
    assert_eq!(times(long), [1_500_000_000, 500_000_000]);
    assert_eq!(
        times(&whole(long).0),
        [0, 2_000_000_000],
        "times count from the first event shown"
    );
    let names: Vec<String> = merged.trace.process_names().into_values().collect();
    assert_eq!(names, ["p70", "p71"], "names stay");
    let merged = Merged::of(&["--last", "2m"], &[run().path()]);
    assert_eq!(merged.trace.names().len(), 4);
    assert_eq!(merged.report.0["window"]["events_left_out"], 0);
}

#[test]
fn the_report_says_what_was_left_out_and_bad_durations_are_refused() {
    let dir = run();
    let ended = Ended::of(trace_merge().args(["--last", "1s"]).arg(dir.path()));
    let said = "left out: 2 events and 0 whole segments before the last 1s; 1 spans reach into it, marked sa_cut";
    assert!(
        ended.code == 0 && ended.stderr.contains(said),
        "{}",
        ended.stderr
    );
    for bad in ["30", "-1s", "0s", "soon"] {
        let ended = Ended::of(trace_merge().arg(format!("--last={bad}")).arg(dir.path()));
        assert!(
            ended.code == 2 && ended.stderr.contains("30s, 500ms or 2m"),
            "{}",
            ended.stderr
        );
    }
}
