use super::*;
use std::cmp::Reverse;

/// Deterministic pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound).cast_signed()
    }

    fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap()
    }
}

/// Contents of a chunk: spans, and begins of unfinished spans.
type Content<'a> = (&'a [Span], &'a [i64]);

fn clash(spans: &[Span], unfinished: &[i64]) -> bool {
    let clashes = |a: &Span, b: &Span| a.0 < b.0 && b.0 < a.1 && a.1 < b.1;
    let pairs = spans.iter().flat_map(|a| spans.iter().map(move |b| (a, b)));
    let is_inside = |start: &i64| spans.iter().any(|a| a.0 <= *start && *start < a.1);
    pairs.into_iter().any(|(a, b)| clashes(a, b)) || unfinished.iter().any(is_inside)
}

fn nesting((spans, unfinished): Content<'_>) -> Nesting {
    let mut nesting = Nesting::default();
    spans.iter().for_each(|span| nesting.add(*span));
    unfinished
        .iter()
        .for_each(|start| nesting.add_unfinished(*start));
    nesting
}

fn may_overlap(chunks: &[Content<'_>], room: usize) -> bool {
    let mut history = History::default();
    for chunk in chunks {
        history.append(&nesting(*chunk), room);
    }
    history.may_overlap()
}

/// Returns the results for the same spans, cut into chunks in several ways.
fn results((spans, unfinished): Content<'_>, numbers: &mut Numbers) -> Vec<bool> {
    let mut results = vec![may_overlap(&[(spans, unfinished)], 4)];
    for _ in 0..4 {
        let (mut chunks, mut rest, mut open) = (Vec::new(), spans, unfinished);
        while !rest.is_empty() {
            let (first, later) = rest.split_at(1 + numbers.index(rest.len().min(9)));
            let (begun, later_begins) = open.split_at(numbers.index(open.len() + 1));
            chunks.push((first, begun));
            (rest, open) = (later, later_begins);
        }
        chunks.push((&[], open));
        results.push(may_overlap(&chunks, 1 + numbers.index(4)));
    }
    results
}

#[test]
fn overlaps_are_found_in_any_order() {
    let mut clashing = 0;
    for seed in 0..30_000 {
        let mut numbers = Numbers(seed);
        let mut spans: Vec<Span> = (0..2 + numbers.below(30))
            .map(|_| (numbers.below(60), numbers.below(9)))
            .map(|(start, dur)| (start, start + dur))
            .collect();
        match seed % 3 {
            0 => spans.sort_by_key(|span| (span.1, Reverse(span.0))),
            1 => spans.sort_by_key(|span| (span.0, Reverse(span.1))),
            _ => {}
        }
        let unfinished: Vec<i64> = (0..numbers.below(3).max(1) - 1)
            .map(|_| numbers.below(70))
            .collect();
        if clash(&spans, &unfinished) {
            clashing += 1;
            let results = results((&spans, &unfinished), &mut numbers);
            assert!(
                !results.contains(&false),
                "{seed}: {spans:?} {unfinished:?}"
            );
        }
    }
    assert!(clashing > 10_000, "{clashing}");
}
