//! Spans that overlap others of their thread are on lanes where they nest, together with everything
//! that belongs to them.

use crate::clashing::{Clashing, ORDERS, Order};
use crate::full::cases;
use crate::invocation::{Merged, RunDir, one_block};
use crate::oracle;
use crate::random::Rng;
use crate::trace::{assert_same, ns};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use std::cmp::Reverse;
use std::collections::BTreeMap;

const CASES: u64 = 600;

/// Asserts that complete spans on each track of the trace nest.
pub(crate) fn assert_tracks_nest(merged: &Merged, what: &str) {
    let mut tracks: BTreeMap<String, Vec<(i64, Reverse<i64>)>> = BTreeMap::new();
    for event in merged.trace.phase("X") {
        let start = ns(&event["ts"]);
        let track = format!("{}/{}", event["pid"], event["tid"]);
        tracks
            .entry(track)
            .or_default()
            .push((start, Reverse(start + ns(&event["dur"]))));
    }
    for (track, mut spans) in tracks {
        spans.sort_unstable();
        let mut open: Vec<i64> = Vec::new();
        for (start, Reverse(end)) in spans {
            open.retain(|open| *open > start);
            let nests = open.last().is_none_or(|open| *open >= end);
            assert!(nests, "{what}: track {track} at {start}");
            open.push(end);
        }
    }
}

/// Merges the run and compares it with the naive reader. Returns the number of spans that moved.
pub(crate) fn check(dir: &RunDir, what: &str) -> u64 {
    let expected = oracle::read(&dir.fragments());
    let merged = dir.merge();
    assert_same(&expected.events, &merged.trace.comparable(), what);
    assert_tracks_nest(&merged, what);
    let moved = expected.lanes.moved;
    let reported = merged.report.number("overlapping_spans");
    assert_eq!(reported, moved, "{what}");
    let stated = &merged.trace.document["otherData"]["overlapping_spans"];
    assert_eq!(stated.as_u64(), (moved > 0).then_some(moved), "{what}");
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
        // Lines with the tid 0 belong to the main thread.
        for tid in [[901, 902], [0, 900]][usize::from(seed % 5 == 0)] {
            let mut thread = Clashing::new(&mut rng, tid, range);
            (0..count).for_each(|serial| thread.add_random(1000 * tid as usize + serial, 60));
            lines.extend(thread.lines(order));
        }
        if seed % 4 == 0 {
            // Two recorders of one process may share its threads.
            for (nonce, lines) in (7..).zip(lines.chunks(lines.len().div_ceil(2))) {
                let process = Process {
                    nonce,
                    ..Process::new(900)
                };
                one_block(&process, lines).write(&dir.fragments(), &format!("900.{nonce}"));
            }
        } else {
            dir.put("900", &stream(&lines));
        }
        moved += check(&dir, &format!("seed {seed}, {order:?}"));
    }
    assert!(6 * moved > 25 * cases(CASES), "{moved}");
}

#[test]
fn events_of_many_chunks_agree_with_the_oracle() {
    for order in [Order::None, Order::ByEnd] {
        let (mut rng, dir) = (Rng::new(3), RunDir::new());
        let mut thread = Clashing::new(&mut rng, 901, 500_000);
        (0..26_000).for_each(|serial| thread.add_random(serial, 200));
        let mut lines = thread.lines(order);
        // A chunk with a damaged line is read in another way than its neighbours.
        lines.insert(lines.len() / 2, "torn".to_owned());
        let content = stream(&lines);
        assert!(content.len() > 2 << 20, "some chunks");
        dir.put("900", &content);
        assert!(check(&dir, &format!("{order:?}")) > 1_000);
    }
}
