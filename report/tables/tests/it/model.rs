//! Depth and parent of random spans, against what a naive model says.

use crate::events::event;
use crate::tables::{Row, Tables};
use std::collections::HashMap;

/// A span: thread, begin, end.
type Span = (u64, i64, i64);

/// Spans that lie in each other or beside each other, in any order.
fn spans(seed: u64) -> Vec<Span> {
    let mut state = seed;
    let mut next = |below: i64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        i64::try_from(state >> 33).unwrap() % below
    };
    let mut found = Vec::new();
    for thread in 1..4 {
        let mut todo = vec![(0, 4_000)];
        while let Some((from, to)) = todo.pop() {
            if to - from < 8 || found.len() > 400 {
                continue;
            }
            found.push((thread, from, to));
            let middle = from + 1 + next(to - from - 2);
            todo.push((from + next(2), middle));
            todo.push((middle, to - next(5)));
        }
    }
    for at in (1..found.len()).rev() {
        let below = i64::try_from(at).unwrap() + 1;
        found.swap(at, usize::try_from(next(below)).unwrap());
    }
    found
}

#[test]
fn depth_and_parent_are_those_of_a_naive_model() {
    for seed in 1..20 {
        let spans = spans(seed);
        let lines = (0..).zip(&spans).map(|(nth, (tid, from, to))| {
            let dur = to - from;
            event(&format!("X 1/{tid} {from}+{dur} {nth}"))
        });
        let slices = Tables::of_lines(&lines.collect::<Vec<_>>()).rows("slice");
        assert_eq!(slices.len(), spans.len());
        let number = |row: &Row| {
            let name = row["name"].as_str().unwrap();
            (row["id"].as_i64().unwrap(), name.parse().unwrap())
        };
        let number: HashMap<i64, usize> = slices.iter().map(number).collect();
        for row in &slices {
            let nth = number[&row["id"].as_i64().unwrap()];
            let (tid, from, to) = spans[nth];
            let around = |other: &usize| {
                let (of, begin, end) = spans[*other];
                // Of equal spans the one that stands first is around the other.
                let is_around =
                    begin <= from && to <= end && (end - begin > to - from || *other < nth);
                of == tid && *other != nth && is_around
            };
            let all: Vec<usize> = (0..spans.len()).filter(around).collect();
            assert_eq!(row["depth"], all.len(), "{seed} {nth}");
            let last = |other: &usize| (spans[*other].1, -spans[*other].2, *other);
            let innermost = all.into_iter().max_by_key(last);
            let parent = row["parent_id"].as_i64().map(|id| number[&id]);
            assert_eq!(parent, innermost, "{seed} {nth}");
        }
        assert!(slices.is_sorted_by_key(|row| row["ts"].as_i64()));
    }
}
