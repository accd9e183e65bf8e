//! Spans that overlap others of their thread: each on a row where it nests, with all that belongs to it.

use crate::clashing::{Clashing, ORDERS, Order};
use crate::invocation::{Merged, RunDir};
use crate::oracle;
use crate::random::Rng;
use crate::trace::{assert_same, ns};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use std::cmp::Reverse;
use std::collections::BTreeMap;

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
            assert!(
                open.last().is_none_or(|open| *open >= end),
                "{what}: row {row} at {start}"
            );
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
    assert_eq!(
        merged.report.number("overlapping_spans"),
        expected.shown.moved,
        "{what}"
    );
    let told = &merged.trace.document["otherData"]["overlapping_spans"];
    let moved = Some(expected.shown.moved).filter(|moved| *moved > 0);
    assert_eq!(told.as_u64(), moved, "{what}");
    expected.shown.moved
}

#[test]
fn random_events_agree_with_the_oracle_in_any_order() {
    let mut moved = 0;
    for seed in 0..240 {
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
    assert!(moved > 1_000, "{moved}");
}

#[test]
fn events_of_many_chunks_agree_with_the_oracle() {
    for order in ORDERS {
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

fn name_of_row<'a>(
    merged: &'a Merged,
    names: &'a BTreeMap<String, String>,
    event: &str,
) -> Option<&'a str> {
    let event = merged.trace.named(event);
    let name = names.get(&format!("{}/{}", event["pid"], event["tid"]));
    name.map(String::as_str)
}

#[test]
fn one_nanosecond_is_enough() {
    let (mut rng, dir) = (Rng::new(1), RunDir::new());
    let (start, mut lines) = (1_000_000_000, Vec::new());
    let mut thread = Clashing::new(&mut rng, 903, 1);
    thread.span("first", start, 1_000);
    thread.span("clashes by 1 ns", start + 999, 1_000);
    thread.span("touches", start + 1_999, 1);
    lines.extend(thread.lines(Order::None));
    let mut thread = Clashing::new(&mut rng, 904, 1);
    thread.span("child", start, 1_000);
    thread.span("as long", start, 1_000);
    thread.span("parent", start, 1_001);
    lines.extend(thread.lines(Order::None));
    let thread = r#"{"name":"thread_name","ph":"M","pid":900,"tid":903,"args":{"name":"worker"}}"#;
    lines.push(thread.to_owned());
    dir.put("900", &stream(&lines));
    assert_eq!(check(&dir, "1 ns"), 1);
    let merged = dir.merge();
    let names = merged.trace.thread_names();
    assert_eq!(
        name_of_row(&merged, &names, "clashes by 1 ns"),
        Some("worker (overlapping 1)")
    );
    for name in ["first", "touches"] {
        assert_eq!(name_of_row(&merged, &names, name), Some("worker"), "{name}");
    }
    for name in ["child", "as long", "parent"] {
        assert_eq!(name_of_row(&merged, &names, name), None, "{name}");
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
            let span = |serial: u64| {
                let start = 5_000_000_000 + 15 * number + 40 * serial;
                on.span(
                    start,
                    1 + rng.below(40) as u64,
                    &format!("span {number} {serial}"),
                    "",
                )
            };
            let mut fragment = process.fragment();
            fragment.block(0, 0, &stream(&(0..10_u64).map(span).collect::<Vec<_>>()));
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
    assert_eq!(
        (&span["ph"], &span["args"]["size"]),
        (&"X".into(), &7.into())
    );
}
