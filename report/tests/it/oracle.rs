//! Random traces, compared with a naive reader that keeps everything in memory.

use crate::events::event;
use crate::reports::report_from_events;
use std::collections::BTreeMap;

/// A pseudo-random generator with a fixed sequence.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A span of a thread, in µs.
#[derive(Clone, Debug)]
struct Span {
    tid: u64,
    start: u64,
    end: u64,
    name: String,
}

/// Adds spans of a thread that nest within a time range.
fn nested(numbers: &mut Numbers, tid: u64, (start, end): (u64, u64), spans: &mut Vec<Span>) {
    if end - start < 4 {
        return;
    }
    let name = format!("n{}", numbers.below(6));
    spans.push(Span {
        tid,
        start,
        end,
        name,
    });
    let (mut at, stop) = (start + 1, end - 1);
    while at < stop {
        let to = (at + 1 + numbers.below(stop - at)).min(stop);
        if numbers.below(3) > 0 {
            nested(numbers, tid, (at, to), spans);
        }
        at = to + numbers.below(3);
    }
}

/// Totals of a name: all calls and outermost calls, time with and without inner spans, and durations.
#[derive(Debug, Default, PartialEq)]
struct Totals {
    ncall: u64,
    outermost: u64,
    ttot: u64,
    tsub: u64,
    durations: Vec<u64>,
}

fn naive(spans: &[Span]) -> BTreeMap<String, Totals> {
    let mut totals: BTreeMap<String, Totals> = BTreeMap::new();
    let holds = |outer: &Span, inner: &Span| {
        let is_within = outer.start <= inner.start && inner.end <= outer.end;
        let is_equal = (outer.start, outer.end) == (inner.start, inner.end);
        outer.tid == inner.tid && is_within && !is_equal
    };
    for span in spans {
        let total = totals.entry(span.name.clone()).or_default();
        let inner = || spans.iter().filter(|inner| holds(span, inner));
        let is_own = |at: &u64| !inner().any(|inner| (inner.start..inner.end).contains(at));
        let mut outer = spans.iter().filter(|outer| holds(outer, span));
        let dur = span.end - span.start;
        total.ncall += 1;
        total.tsub += (span.start..span.end).filter(is_own).count() as u64;
        total.durations.push(dur);
        if outer.all(|outer| outer.name != span.name) {
            total.outermost += 1;
            total.ttot += dur;
        }
    }
    let all = totals.values_mut();
    all.for_each(|total| total.durations.sort_unstable());
    totals
}

#[test]
fn times_of_names_equal_a_naive_readers() {
    for seed in 0..60 {
        let (mut numbers, mut spans) = (Numbers(seed), Vec::new());
        for tid in 1..=1 + seed % 4 {
            nested(&mut numbers, tid, (10, 200), &mut spans);
        }
        let lines = spans.iter().map(|span| {
            let (tid, start, dur) = (span.tid, span.start, span.end - span.start);
            event(&format!("X 1/{tid} {start}+{dur} {}", span.name))
        });
        let mut lines: Vec<_> = lines.collect();
        // Shuffle the lines.
        for nth in (1..lines.len()).rev() {
            lines.swap(nth, usize::try_from(numbers.below(nth as u64 + 1)).unwrap());
        }
        let found = report_from_events(&lines);
        let expected = naive(&spans);
        assert_eq!(found.names.len(), expected.len(), "{seed}");
        for name in &found.names {
            let total = &expected[&name.name];
            let us = |ns: i64| u64::try_from(ns).unwrap() / 1000;
            let calls = (name.ncall, name.ncall_outermost);
            let found = (calls, us(name.ttot_ns), us(name.tsub_ns));
            let expected = ((total.ncall, total.outermost), total.ttot, total.tsub);
            assert_eq!(found, expected, "{seed}: {}", name.name);
            let (times, duration) = (&total.durations, &name.duration);
            let n = times.len();
            let ends = [us(duration.min_ns), us(duration.max_ns)];
            assert_eq!(ends, [times[0], times[n - 1]]);
            let middle = (times[(n - 1) / 2] + times[n / 2]) as f64 / 2.0;
            let off = duration.p50_ns / 1000.0 - middle;
            assert!(off.abs() < 1e-6, "{seed}: {}", name.name);
        }
        let tsub = found.names.iter().map(|name| name.tsub_ns);
        assert!(tsub.is_sorted_by(|one, other| one >= other));
    }
}
