//! Spans that overlap others of their thread: each on a row where it nests, with all that belongs to it.

use crate::clashing::{Clashing, ORDERS, Order};
use crate::full::cases;
use crate::invocation::{Merged, RunDir};
use crate::oracle;
use crate::random::Rng;
use crate::trace::{assert_same, ns};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use std::cmp::Reverse;
use std::collections::BTreeMap;

const CASES: u64 = 600;

/// Asserts that complete spans of one row of the trace nest.
pub(crate) fn assert_rows_nest(merged: &Merged, what: &str) {
    let mut rows: BTreeMap<String, Vec<(i64, Reverse<i64>)>> = BTreeMap::new();
    for event in merged.trace.phase("X") {
        let start = ns(&event["ts"]);
        let row = format!("{}/{}", event["pid"], event["tid"]);
        rows.entry(row)
            .or_default()
            .push((start, Reverse(start + ns(&event["dur"]))));
    }
    for (row, mut spans) in rows {
        spans.sort_unstable();
        let mut open: Vec<i64> = Vec::new();
        for (start, Reverse(end)) in spans {
            open.retain(|open| *open > start);
            let nests = open.last().is_none_or(|open| *open >= end);
            assert!(nests, "{what}: row {row} at {start}");
            open.push(end);
        }
    }
}

/// Merges the run and compares it with the naive reader; gives how many spans moved.
pub(crate) fn check(dir: &RunDir, what: &str) -> u64 {
    let expected = oracle::read(&dir.fragments());
    let merged = dir.merge();
    assert_same(&expected.events, &merged.trace.comparable(), what);
    assert_rows_nest(&merged, what);
    let moved = expected.shown.moved;
    let reported = merged.report.number("overlapping_spans");
    assert_eq!(reported, moved, "{what}");
    let told = &merged.trace.document["otherData"]["overlapping_spans"];
    assert_eq!(told.as_u64(), (moved > 0).then_some(moved), "{what}");
    moved
}

#[test]
fn random_events_agree_with_the_oracle_in_any_order() {
    let mut moved = 0;
    for seed in 0..cases(CASES) {
        let order = ORDERS[usize::try_from(seed % 3).unwrap()];
        let (mut rng, dir) = (Rng::new(seed), RunDir::new());
        let (count, range) = (10 + rng.below(60), 30 + rng.below(400));
        let mut lines = Vec::new();
        // Lines with the tid 0 are of the main thread.
        for tid in [[901, 902], [0, 900]][usize::from(seed % 5 == 0)] {
            let mut thread = Clashing::new(&mut rng, tid, range);
            (0..count).for_each(|serial| thread.any(1000 * tid as usize + serial, 60));
            lines.extend(thread.lines(order));
        }
        dir.put("900", &stream(&lines));
        moved += check(&dir, &format!("seed {seed}, {order:?}"));
    }
    assert!(6 * moved > 25 * cases(CASES), "{moved}");
}

#[test]
fn events_of_many_chunks_agree_with_the_oracle() {
    for order in [Order::None, Order::ByEnd] {
        let (mut rng, dir) = (Rng::new(3), RunDir::new());
        let mut thread = Clashing::new(&mut rng, 901, 500_000);
        (0..26_000).for_each(|serial| thread.any(serial, 200));
        let mut lines = thread.lines(order);
        // A chunk with a damaged line is read in another way than those beside it.
        lines.insert(lines.len() / 2, "torn".to_owned());
        let content = stream(&lines);
        assert!(content.len() > 2 << 20, "some chunks");
        dir.put("900", &content);
        assert!(check(&dir, &format!("{order:?}")) > 1_000);
    }
}

#[test]
fn one_nanosecond_is_enough() {
    let (mut rng, dir) = (Rng::new(1), RunDir::new());
    let start = 1_000_000_000;
    let mut thread = Clashing::new(&mut rng, 903, 1);
    thread.span("first", start, 1_000);
    thread.span("clashes by 1 ns", start + 999, 1_000);
    thread.span("touches", start + 1_999, 1);
    let mut lines = thread.lines(Order::None);
    let name = r#"{"name":"thread_name","ph":"M","pid":900,"tid":903,"args":{"name":"worker"}}"#;
    lines.push(name.to_owned());
    dir.put("900", &stream(&lines));
    assert_eq!(check(&dir, "1 ns"), 1);
    let trace = dir.merge().trace;
    let names = trace.thread_names();
    for (span, row) in [
        ("first", "worker"),
        ("clashes by 1 ns", "worker (overlapping 1)"),
        ("touches", "worker"),
    ] {
        let event = trace.named(span);
        let thread = format!("{}/{}", event["pid"], event["tid"]);
        assert_eq!(names[&thread], row, "{span}");
    }
}

#[test]
fn what_is_before_the_window_takes_no_row() {
    let (mut rng, dir) = (Rng::new(6), RunDir::new());
    let mut thread = Clashing::new(&mut rng, 903, 1);
    let start = 1_000_000_000;
    thread.span("before", start, 1_000);
    thread.span("reaches into it", start + 500, 2_000_000);
    dir.put("900", &stream(&thread.lines(Order::ByEnd)));
    for (last, moved) in [("1ms", 0), ("1s", 1)] {
        let merged = Merged::of(&["--last", last], &[dir.path()]);
        assert_eq!(merged.report.number("overlapping_spans"), moved, "{last}");
    }
}

#[test]
fn two_recordings_may_share_a_thread() {
    let mut moved = 0;
    for seed in 0..60 {
        let (mut rng, dir) = (Rng::new(seed), RunDir::new());
        for (number, nonce) in [(1_u64, 7), (2, 8)] {
            let process = Process {
                nonce,
                ..Process::new(900)
            };
            let on = process.main_thread();
            let spans = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|serial| {
                let start = 5_000_000_000 + 15 * number + 40 * serial;
                let dur = 1 + rng.below(40) as u64;
                on.span(start, dur, &format!("span {number} {serial}"), "")
            });
            let mut fragment = process.fragment();
            fragment.block(0, 0, &stream(&spans));
            fragment.write(&dir.fragments(), &format!("90{number}"));
        }
        moved += check(&dir, &format!("seed {seed}"));
    }
    assert!(moved > 100, "{moved}");
}

/// A begin and an end at the same time, each in a recording of its own.
#[test]
fn an_end_in_another_recording_gives_its_args_to_the_begin() {
    let dir = RunDir::new();
    let half = |phase: &str, more: &str| {
        format!(
            r#"{{"ph":"{phase}","pid":900,"tid":900,"ts":5000000.000,"name":"wait","cat":"c"{more}}}"#
        )
    };
    let end = half("E", r#","args":{"size":7}"#);
    for (number, line) in [(1, half("B", "")), (2, end)] {
        let process = Process {
            nonce: number,
            ..Process::new(900)
        };
        let mut fragment = process.fragment();
        fragment.block(0, 0, &stream(&[line]));
        fragment.write(&dir.fragments(), &format!("90{number}"));
    }
    check(&dir, "two recordings");
    let merged = dir.merge();
    let span = merged.trace.named("wait");
    assert_eq!(span["ph"], "X");
    assert_eq!(span["args"]["size"], 7);
}
