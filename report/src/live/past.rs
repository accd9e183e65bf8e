//! A run from its first request until now, in a bounded number of equal parts.
//!
//! Adds up requests as they are folded, tokens of steps, and levels of engines. Returns the series that the live page
//! draws. If there are too many parts, their length doubles.

use super::live_fold::Levels;
use crate::table::{Metric, Request, RequestStatus};
use serde::Serialize;
use std::collections::BTreeMap;
use std::iter::repeat_n;

/// Maximum number of parts.
const PARTS: usize = 500;
/// Initial length of a part, in ns.
const FIRST_NS: i64 = 100_000_000;

/// Sums of one part of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    arrived: u64,
    /// Number of requests that ended, if their arrival is known.
    ended: u64,
    ok: u64,
    /// Output tokens of requests that ended.
    output_tokens: u64,
    /// Decode tokens that engines put into their steps.
    decode_tokens: u64,
    /// Number of requests that got their first token in this part.
    first_tokens: u64,
    /// Sum of the TTFT of these requests.
    ttft_ns: i64,
}

impl Part {
    fn with(mut self, next: &Part) -> Part {
        self.arrived += next.arrived;
        self.ended += next.ended;
        self.ok += next.ok;
        self.output_tokens = self.output_tokens.saturating_add(next.output_tokens);
        self.decode_tokens = self.decode_tokens.saturating_add(next.decode_tokens);
        self.first_tokens += next.first_tokens;
        self.ttft_ns = self.ttft_ns.saturating_add(next.ttft_ns);
        self
    }
}

/// The parts of a run so far.
#[derive(Clone, Debug)]
pub(super) struct Past {
    /// Start of the first part, once any time is known.
    from_ns: Option<i64>,
    part_ns: i64,
    parts: Vec<Part>,
    /// Last levels of each engine in each part.
    levels: BTreeMap<u32, Vec<Levels>>,
}

impl Default for Past {
    fn default() -> Past {
        Past {
            from_ns: None,
            part_ns: FIRST_NS,
            parts: Vec::new(),
            levels: BTreeMap::new(),
        }
    }
}

impl Past {
    /// Counts a request's start, first token and end, each in the part in which it happened. A time that the trace does
    /// not contain is not counted.
    pub(super) fn add_request(&mut self, request: &Request) {
        let begin_ns = request.begin_ns();
        if let Some(part) = begin_ns.and_then(|ns| self.part(ns)) {
            part.arrived += 1;
        }
        let ttft = Metric::Ttft.value(request).zip(request.ttft_end_ns());
        if let Some((ttft_ns, ns)) = ttft
            && let Some(part) = self.part(ns)
        {
            part.first_tokens += 1;
            part.ttft_ns = part.ttft_ns.saturating_add(ttft_ns);
        }
        let is_ended = request.status != RequestStatus::Unfinished;
        let end_ns = request.finished_ns.filter(|_| is_ended);
        if let Some(part) = end_ns.and_then(|ns| self.part(ns)) {
            part.ended += u64::from(begin_ns.is_some());
            part.ok += u64::from(request.status == RequestStatus::Ok);
            let tokens = request.output_tokens.unwrap_or(0);
            part.output_tokens = part.output_tokens.saturating_add(tokens);
        }
    }

    /// Adds the decode tokens that an engine put into a step to the part that contains the step's time `ns`.
    pub(super) fn add_tokens(&mut self, ns: i64, tokens: u64) {
        if let Some(part) = self.part(ns) {
            part.decode_tokens = part.decode_tokens.saturating_add(tokens);
        }
    }

    /// Returns the last values of an engine's counters in the part that contains a time of the trace, in ns, for the
    /// caller to update. Returns `None` if the time is too far from the other times to be stored.
    pub(super) fn levels(&mut self, engine: u32, ns: i64) -> Option<&mut Levels> {
        let index = self.part_index(ns)?;
        let levels = self.levels.entry(engine).or_default();
        if levels.len() <= index {
            levels.resize(index + 1, Levels::default());
        }
        levels.get_mut(index)
    }

    fn part(&mut self, ns: i64) -> Option<&mut Part> {
        let index = self.part_index(ns)?;
        if self.parts.len() <= index {
            self.parts.resize(index + 1, Part::default());
        }
        self.parts.get_mut(index)
    }

    /// Returns the index of the part that contains a time of the trace, in ns. All parts become longer until there is
    /// room for it. Returns `None` if a computation of times overflows.
    fn part_index(&mut self, ns: i64) -> Option<usize> {
        let mut from_ns = *self.from_ns.get_or_insert(ns);
        loop {
            let index = ns.checked_sub(from_ns)?.div_euclid(self.part_ns);
            let before = usize::try_from(index.checked_neg()?).unwrap_or(0);
            let levels = self.levels.values().map(Vec::len).max();
            let used = self.parts.len().max(levels.unwrap_or(0));
            if index < PARTS as i64 && used.saturating_add(before) <= PARTS {
                if before > 0 {
                    from_ns = from_ns.checked_add(index.checked_mul(self.part_ns)?)?;
                    self.start_earlier(from_ns, before);
                }
                return usize::try_from(index.max(0)).ok();
            }
            self.part_ns = self.part_ns.checked_mul(2)?;
            self.parts = joined(&self.parts, |part, next| part.with(next));
            for levels in self.levels.values_mut() {
                *levels = joined(levels, Levels::later);
            }
        }
    }

    /// Inserts empty parts at the front, because an earlier time may be read later. `from_ns` is the new start of the
    /// first part, and `parts` is the number of new parts.
    fn start_earlier(&mut self, from_ns: i64, parts: usize) {
        self.from_ns = Some(from_ns);
        self.parts.splice(..0, repeat_n(Part::default(), parts));
        for levels in self.levels.values_mut() {
            levels.splice(..0, repeat_n(Levels::default(), parts));
        }
    }

    /// Returns the run's past as live views plot it: for each figure, a series with one value per whole part from the
    /// first request until `end_ns`.
    pub(super) fn series(mut self, end_ns: i64) -> LivePast {
        let end = self.part_index(end_ns).unwrap_or(self.parts.len());
        self.parts.resize(end, Part::default());
        let first = self.parts.iter().position(|part| part.arrived > 0);
        let first = first.unwrap_or(0);
        let seconds = self.part_ns as f64 / 1e9;
        let (mut arrived, mut ended) = (0_u64, 0_u64);
        let has_steps = self.parts.iter().any(|part| part.decode_tokens > 0);
        let levels = self.levels.values().map(|levels| carried(levels, end));
        let levels: Vec<Vec<Levels>> = levels.collect();
        let mut past = LivePast {
            part_ns: self.part_ns,
            ..LivePast::default()
        };
        for (index, part) in self.parts.iter().enumerate().skip(first) {
            arrived += part.arrived;
            ended += part.ended;
            let sum_and_count = |level: fn(&Levels) -> Option<(i64, u32)>| {
                let engines = levels
                    .iter()
                    .filter_map(move |levels| level(&levels[index]));
                let values = engines.map(|(_, value)| f64::from(value));
                values
                    .map(|value| (value, 1.0))
                    .reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1))
            };
            let tokens = if has_steps {
                part.decode_tokens
            } else {
                part.output_tokens
            };
            past.in_flight.push(arrived.saturating_sub(ended));
            past.running
                .push(sum_and_count(|levels| levels.running).map(|(sum, _)| sum));
            past.waiting
                .push(sum_and_count(|levels| levels.waiting).map(|(sum, _)| sum));
            past.kv_used.push(
                sum_and_count(|levels| levels.kv_used).map(|(sum, engines)| sum / engines / 1e3),
            );
            past.requests_per_s.push(part.ok as f64 / seconds);
            past.output_tokens_per_s.push(tokens as f64 / seconds);
            let ttft = part.ttft_ns as f64 / part.first_tokens as f64;
            past.ttft_ns.push((part.first_tokens > 0).then_some(ttft));
        }
        past
    }
}

/// Halves the number of values: `join` makes one value from each pair of neighbours. A last value without a neighbour
/// is kept.
fn joined<T: Copy>(values: &[T], join: fn(T, &T) -> T) -> Vec<T> {
    let pairs = values.chunks(2);
    let joined = pairs.map(|pair| pair[1..].iter().fold(pair[0], join));
    joined.collect()
}

/// Returns the last values of an engine's counters at the end of each of the first `parts` parts. A part without new
/// levels keeps the previous ones.
fn carried(levels: &[Levels], parts: usize) -> Vec<Levels> {
    let mut last = Levels::default();
    let at = |index: usize| {
        last = levels.get(index).map_or(last, |next| last.later(next));
        last
    };
    (0..parts).map(at).collect()
}

/// A run from its first request until now, in equal parts. Each value belongs to one part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LivePast {
    /// Length of a part, in ns.
    pub part_ns: i64,
    /// Number of requests in flight at the end of each part.
    pub in_flight: Vec<u64>,
    /// Number of running requests, by the last counts of all engines.
    pub running: Vec<Option<f64>>,
    /// Number of queued requests, by the last counts of all engines.
    pub waiting: Vec<Option<f64>>,
    /// Share of the KV cache that is used, averaged over the engines.
    pub kv_used: Vec<Option<f64>>,
    /// Answered requests per second.
    pub requests_per_s: Vec<f64>,
    /// Output tokens per second. They come from the engines' steps, or else from the requests that ended.
    pub output_tokens_per_s: Vec<f64>,
    /// Mean TTFT in ns of the requests that got their first token in the part.
    pub ttft_ns: Vec<Option<f64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    /// Adds a request that starts and, unless `to_ns` is `None`, ends.
    fn add_request(past: &mut Past, from_ns: i64, to_ns: Option<i64>) {
        past.part(from_ns).unwrap().arrived += 1;
        if let Some(part) = to_ns.and_then(|ns| past.part(ns)) {
            part.ended += 1;
            part.ok += 1;
        }
    }

    /// The start is added last, and the trace's clock does not start with the run.
    #[test]
    fn a_long_run_has_no_more_parts_and_the_same_sums() {
        let mut past = Past::default();
        let at = |second: i64| (500_000 + second) * SECOND_NS;
        for second in (1_000..2_000).chain(0..1_000) {
            let end_ns = (second < 1_990).then_some(at(second));
            add_request(&mut past, at(second), end_ns);
            past.add_tokens(at(second), 7);
        }
        for (engine, second, running) in [(3, 0, 2), (3, 1, 4), (4, 900, 1)] {
            let levels = past.levels(engine, at(second)).unwrap();
            levels.running = Some((at(second), running));
        }
        let series = past.series(at(3_000));
        let (parts, seconds) = (series.in_flight.len(), series.part_ns as f64 / 1e9);
        assert!((250..=PARTS).contains(&parts), "{parts}");
        assert!((parts as f64 * seconds - 3_000.0).abs() < 2.0 * seconds);
        assert_eq!(series.in_flight.last(), Some(&10));
        let sum = |rates: &[f64]| (rates.iter().sum::<f64>() * seconds).round();
        assert_eq!(sum(&series.requests_per_s), 1_990.0);
        assert_eq!(sum(&series.output_tokens_per_s), 14_000.0);
        let running = (series.running[0], series.running[parts - 1]);
        assert_eq!(running, (Some(4.0), Some(5.0)));
        assert_eq!(series.waiting[parts - 1], None);
    }

    #[test]
    fn a_run_begins_with_its_first_request() {
        let mut past = Past::default();
        past.add_tokens(FIRST_NS, 1);
        add_request(&mut past, 5 * FIRST_NS, None);
        assert_eq!(past.series(8 * FIRST_NS + 1).in_flight, [1, 1, 1]);
    }
}
