//! Computes values over time from edges and tokens.

use crate::gather::edge::{Edge, EdgeKind};
use crate::serving_clock::ServingClock;
use crate::table::{Activity, Series, SeriesKind, Timeline};
use std::collections::{BTreeMap, BTreeSet};
use trace_store::sorter::Sorted;

/// Number of parts into which the time is divided. It exceeds the number of points that a screen can show.
const PARTS: i64 = 500;
/// Maximum number of series of one kind. Processes that come first are shown.
const SERIES: usize = 64;
/// Maximum number of series that are counted as left out.
const MOST_LEFT_OUT: usize = 10_000;

type Key = (SeriesKind, Option<usize>);

/// Time of a run, divided into equal parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    from_ns: i64,
    part_ns: i64,
    n: usize,
}

/// A value that holds until it is set again.
#[derive(Debug)]
struct Level {
    now: f64,
    /// Time up to which the value is counted.
    counted_ns: i64,
    is_known: bool,
    /// For each part, the integral of the value, and the time in which the value is known.
    sums: Vec<(f64, f64)>,
}

impl Parts {
    pub(crate) fn new(from_ns: i64, to_ns: i64) -> Parts {
        let wall_ns = to_ns.saturating_sub(from_ns).max(1);
        let part_ns = wall_ns.saturating_add(PARTS - 1) / PARTS;
        let n = usize::try_from(wall_ns.saturating_add(part_ns - 1) / part_ns).unwrap_or(1);
        Parts {
            from_ns,
            part_ns,
            n,
        }
    }

    /// Returns the index of the part that contains a time.
    fn index(&self, ns: i64) -> usize {
        let nth = ns.saturating_sub(self.from_ns).max(0) / self.part_ns;
        usize::try_from(nth).unwrap_or(0).min(self.n - 1)
    }

    /// Calls `found` with the index of each part between two times, and with the length of the overlap.
    fn between(&self, from_ns: i64, to_ns: i64, mut found: impl FnMut(usize, i64)) {
        let edge_ns = |nth: usize| {
            let nth = i64::try_from(nth).unwrap_or(i64::MAX);
            self.from_ns
                .saturating_add(self.part_ns.saturating_mul(nth))
        };
        let end_ns = edge_ns(self.n);
        let (mut from_ns, to_ns) = (from_ns.max(self.from_ns), to_ns.min(end_ns));
        while from_ns < to_ns {
            let nth = self.index(from_ns);
            let part_end_ns = edge_ns(nth + 1).min(to_ns);
            found(nth, part_end_ns.saturating_sub(from_ns));
            if nth + 1 == self.n {
                return;
            }
            from_ns = part_end_ns;
        }
    }
}

impl Level {
    fn new(parts: &Parts) -> Level {
        Level {
            now: 0.0,
            counted_ns: 0,
            is_known: false,
            sums: vec![(0.0, 0.0); parts.n],
        }
    }

    fn set(&mut self, parts: &Parts, ns: i64, value: f64, is_known: bool) {
        if self.is_known {
            let (now, sums) = (self.now, &mut self.sums);
            parts.between(self.counted_ns, ns, |nth, part_ns| {
                sums[nth].0 += now * part_ns as f64;
                sums[nth].1 += part_ns as f64;
            });
        }
        (self.counted_ns, self.now, self.is_known) = (ns, value, is_known);
    }

    fn finish(self) -> Vec<Option<f64>> {
        let mean = |(sum, ns): (f64, f64)| (ns > 0.0).then(|| sum / ns);
        self.sums.into_iter().map(mean).collect()
    }
}

/// Steps of a worker.
struct Steps {
    open: u32,
    since_ns: i64,
    longest_ns: Vec<Option<f64>>,
}

impl Steps {
    /// Ends a span of a step. The outermost span is the step.
    fn end(&mut self, ns: i64, nth: usize) {
        self.open = self.open.saturating_sub(1);
        if self.open == 0 {
            let took_ns = ns.saturating_sub(self.since_ns) as f64;
            let longest_ns = &mut self.longest_ns[nth];
            *longest_ns = Some(longest_ns.map_or(took_ns, |longest| longest.max(took_ns)));
        }
    }
}

/// State of all series while edges are read.
pub(crate) struct TimelineFold {
    parts: Parts,
    levels: BTreeMap<Key, Level>,
    steps: BTreeMap<usize, Steps>,
    tokens: Vec<u64>,
    /// Series beyond the maximum.
    left_out: BTreeSet<Key>,
}

impl TimelineFold {
    pub(crate) fn new(parts: Parts) -> TimelineFold {
        TimelineFold {
            levels: BTreeMap::new(),
            steps: BTreeMap::new(),
            tokens: Vec::new(),
            left_out: BTreeSet::new(),
            parts,
        }
    }

    /// Counts tokens that were produced at the same time.
    pub(crate) fn add_tokens(&mut self, ns: i64, tokens: u32) {
        self.tokens.resize(self.parts.n, 0);
        self.tokens[self.parts.index(ns)] += u64::from(tokens);
    }

    /// Returns all series in serving time. A level that is not set again holds until the end of the run.
    pub(crate) fn finish(
        mut self,
        edges: &Sorted<Edge>,
        clock: &ServingClock,
        end_ns: i64,
    ) -> Timeline {
        for edge in edges.iter() {
            let ns = clock.serving_ns(edge.ns);
            self.apply(&Edge { ns, ..*edge }, end_ns);
        }
        let mut series: BTreeMap<Key, Vec<Option<f64>>> = BTreeMap::new();
        let levels = self.levels.into_iter();
        series.extend(levels.map(|(key, level)| (key, level.finish())));
        for (process, steps) in self.steps {
            let key = (SeriesKind::LongestStepNs, Some(process));
            series.insert(key, steps.longest_ns);
        }
        if !self.tokens.is_empty() {
            let seconds = self.parts.part_ns as f64 / 1e9;
            let tokens = self.tokens.iter().map(|n| Some(*n as f64 / seconds));
            series.insert((SeriesKind::OutputTokensPerS, None), tokens.collect());
        }
        let series_of = |((kind, process), values)| Series {
            of: kind,
            process,
            values,
        };
        Timeline {
            from_ns: self.parts.from_ns,
            part_ns: self.parts.part_ns,
            left_out: self.left_out.len(),
            series: series.into_iter().map(series_of).collect(),
        }
    }

    fn apply(&mut self, edge: &Edge, end_ns: i64) {
        let process = edge.process as usize;
        let busy = (SeriesKind::BusyPercent, Some(process));
        if let Some(kind) = edge.kind.level() {
            let value = match kind {
                SeriesKind::KvUsedPercent => f64::from(edge.value) / 10.0,
                _ => edge.value.into(),
            };
            self.set_level((kind, Some(process)), edge.ns, value, true);
        }
        match edge.kind {
            EdgeKind::RequestBegin => self.add_request(edge.ns.min(end_ns), 1.0),
            EdgeKind::RequestEnd => self.add_request(edge.ns.min(end_ns), -1.0),
            EdgeKind::DeviceBegin | EdgeKind::GapEnd => {
                self.set_level(busy, edge.ns, 100.0, true);
            }
            EdgeKind::GapBegin => self.set_level(busy, edge.ns, 0.0, true),
            EdgeKind::DeviceEnd => self.set_level(busy, edge.ns, 0.0, false),
            EdgeKind::Begin(Activity::Step) => {
                if let Some(steps) = self.worker_steps(process) {
                    steps.open += 1;
                    if steps.open == 1 {
                        steps.since_ns = edge.ns;
                    }
                }
            }
            EdgeKind::End(Activity::Step) => {
                let nth = self.parts.index(edge.ns);
                if let Some(steps) = self.worker_steps(process) {
                    steps.end(edge.ns, nth);
                }
            }
            _ => {}
        }
    }

    /// Returns true if the series exists or there is room for it. Counts it as left out otherwise.
    fn has_room(&mut self, key: Key) -> bool {
        let kind = (key.0, None)..=(key.0, Some(usize::MAX));
        let (levels, steps) = (&self.levels, &self.steps);
        let has_room = match key {
            (SeriesKind::LongestStepNs, Some(process)) => {
                steps.contains_key(&process) || steps.len() < SERIES
            }
            _ => levels.contains_key(&key) || levels.range(kind).count() < SERIES,
        };
        if !has_room && self.left_out.len() < MOST_LEFT_OUT {
            self.left_out.insert(key);
        }
        has_room
    }

    fn worker_steps(&mut self, process: usize) -> Option<&mut Steps> {
        let n = self.parts.n;
        if !self.has_room((SeriesKind::LongestStepNs, Some(process))) {
            return None;
        }
        Some(self.steps.entry(process).or_insert_with(|| Steps {
            open: 0,
            since_ns: 0,
            longest_ns: vec![None; n],
        }))
    }

    fn set_level(&mut self, key: Key, ns: i64, value: f64, is_known: bool) {
        if self.has_room(key) {
            let parts = self.parts;
            let level = self.levels.entry(key).or_insert_with(|| Level::new(&parts));
            level.set(&parts, ns, value, is_known);
        }
    }

    fn add_request(&mut self, ns: i64, more: f64) {
        let key = (SeriesKind::InFlight, None);
        let now = self.levels.get(&key).map_or(0.0, |level| level.now);
        self.set_level(key, ns, (now + more).max(0.0), true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(ns: i64, kind: EdgeKind, process: u32, value: u32) -> Edge {
        Edge {
            ns,
            kind,
            process,
            value,
        }
    }

    #[test]
    fn parts_have_the_mean_of_their_time() {
        // 500 parts of 10 ns.
        let mut fold = TimelineFold::new(Parts::new(1_000, 6_000));
        for ns in [999, 1_000, 1_009, 6_000] {
            fold.add_tokens(ns, 1);
        }
        let edges = vec![
            edge(1_000, EdgeKind::DeviceBegin, 7, 0),
            edge(1_004, EdgeKind::Running, 3, 8),
            edge(1_005, EdgeKind::Begin(Activity::Step), 4, 0),
            edge(1_006, EdgeKind::Begin(Activity::Step), 4, 0),
            edge(1_007, EdgeKind::GapBegin, 7, 0),
            edge(1_013, EdgeKind::GapEnd, 7, 0),
            edge(1_014, EdgeKind::End(Activity::Step), 4, 0),
            edge(1_015, EdgeKind::End(Activity::Step), 4, 0),
            edge(1_016, EdgeKind::Running, 3, 2),
            edge(1_020, EdgeKind::DeviceEnd, 7, 0),
            edge(1_020, EdgeKind::Running, 3, 0),
        ];
        let found = fold.finish(&Sorted::Memory(edges), &ServingClock::whole(), 6_000);
        assert_eq!((found.from_ns, found.part_ns), (1_000, 10));
        let series = found.series.iter();
        let first = series.map(|series| (series.of, series.process, &series.values[..3]));
        use SeriesKind::{BusyPercent, LongestStepNs, OutputTokensPerS, Running};
        let tokens = [Some(3e8), Some(0.0), Some(0.0)];
        let expected = [
            (Running, Some(3), &[Some(8.0), Some(5.6), None][..]),
            (OutputTokensPerS, None, &tokens),
            (BusyPercent, Some(7), &[Some(70.0), Some(70.0), None]),
            (LongestStepNs, Some(4), &[None, Some(10.0), None]),
        ];
        assert_eq!(first.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn any_time_has_parts() {
        let ends = [
            (0, 0),
            (5, 6),
            (0, 501),
            (-3, i64::MAX),
            (i64::MIN, i64::MAX),
        ];
        for (from_ns, to_ns) in ends {
            let parts = Parts::new(from_ns, to_ns);
            let mut sum_ns = 0_i64;
            parts.between(from_ns, to_ns, |_, ns| sum_ns = sum_ns.saturating_add(ns));
            // For times beyond any real trace, the last part may be cut short.
            if to_ns < i64::MAX / 2 {
                assert_eq!(sum_ns, to_ns - from_ns, "{parts:?}");
            }
            assert!((1..=500).contains(&parts.n), "{parts:?}");
            let ends = (parts.index(from_ns), parts.index(to_ns));
            assert_eq!(ends, (0, parts.n - 1), "{parts:?}");
        }
    }

    /// A request without an end is in flight until the end of the run. Of very many processes, only some have series.
    #[test]
    fn levels_without_an_end_hold_and_series_are_limited() {
        let mut edges = vec![edge(0, EdgeKind::RequestBegin, 0, 1)];
        edges.extend((0..1_000).map(|process| edge(1, EdgeKind::Running, process, 1)));
        edges.push(edge(i64::MAX, EdgeKind::RequestEnd, 0, 1));
        let fold = TimelineFold::new(Parts::new(0, 5_000));
        let found = fold.finish(&Sorted::Memory(edges), &ServingClock::whole(), 5_000);
        let counts = (found.series.len(), found.left_out);
        assert_eq!(counts, (1 + SERIES, 1_000 - SERIES));
        let requests = &found.series[0];
        assert_eq!(requests.of, SeriesKind::InFlight);
        assert!(requests.values.iter().all(|value| *value == Some(1.0)));
    }
}
