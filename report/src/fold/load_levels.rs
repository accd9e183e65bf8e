//! Computes the levels of load over time from edges, and the contents of each engine's steps from its counters.

use crate::fold::requests::life::Decoding;
use crate::gather::edge::{Edge, EdgeKind};
use crate::gather::step_record::{StepRecord, StepSpeculation, StepTokens};
use crate::serving_clock::ServingClock;
use crate::table::{Batching, LoadLevel, SeriesKind};
use std::collections::BTreeMap;
use trace_store::sorter::Sorted;

/// Distribution of a level over time.
#[derive(Debug, Default)]
struct Level {
    /// Time up to which the level is counted. `None` before its first value.
    counted_ns: Option<i64>,
    now: u32,
    ns_at: BTreeMap<u32, i64>,
}

impl Level {
    fn set(&mut self, ns: i64, value: u32) {
        self.count(ns);
        self.now = value;
    }

    fn count(&mut self, ns: i64) {
        let counted_ns = self.counted_ns.replace(ns).unwrap_or(ns);
        if ns > counted_ns {
            *self.ns_at.entry(self.now).or_default() += ns - counted_ns;
        }
    }

    fn finish(self, kind: SeriesKind, process: Option<usize>) -> Option<LoadLevel> {
        let wall_ns: i64 = self.ns_at.values().sum();
        let unit = match kind {
            SeriesKind::KvUsedPercent => 0.1,
            _ => 1.0,
        };
        let at = |share: f64| {
            let mut below_ns = 0;
            let mut levels = self.ns_at.iter();
            let found = levels.find(|(_, ns)| {
                below_ns += **ns;
                below_ns as f64 >= share * wall_ns as f64
            });
            unit * f64::from(found.map_or(0, |(level, _)| *level))
        };
        let levels = self.ns_at.iter();
        let sum: f64 = levels
            .map(|(level, ns)| f64::from(*level) * *ns as f64)
            .sum();
        (wall_ns > 0).then(|| LoadLevel {
            of: kind,
            process,
            wall_ns,
            mean: unit * sum / wall_ns as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: at(1.0),
        })
    }
}

/// Returns the levels of requests and of each engine in serving time. The level of all requests ends at `last_ns`, when
/// the last request ends.
pub(crate) fn load_levels(
    edges: &Sorted<Edge>,
    clock: &ServingClock,
    last_ns: i64,
) -> Vec<LoadLevel> {
    let mut levels: BTreeMap<(SeriesKind, Option<usize>), Level> = BTreeMap::new();
    for edge in edges.iter() {
        if let Some(kind) = edge.kind.level() {
            let level = levels
                .entry((kind, Some(edge.process as usize)))
                .or_default();
            level.set(clock.serving_ns(edge.ns), edge.value);
        }
        if matches!(edge.kind, EdgeKind::RequestBegin | EdgeKind::RequestEnd) {
            let level = levels.entry((SeriesKind::InFlight, None)).or_default();
            let now = match edge.kind {
                EdgeKind::RequestBegin => level.now.saturating_add(1),
                _ => level.now.saturating_sub(1),
            };
            level.set(clock.serving_ns(edge.ns.min(last_ns)), now);
        }
    }
    let levels = levels.into_iter();
    let level = |((kind, process), level): (_, Level)| level.finish(kind, process);
    levels.filter_map(level).collect()
}

/// Returns the batchings with the steps that only prefill while requests of their engine wait for a token. `steps` are the steps of
/// all engines.
pub(crate) fn with_prompt_steps(
    mut batchings: Vec<Batching>,
    steps: &Sorted<StepRecord>,
    decodings: &[Decoding],
) -> Vec<Batching> {
    for batching in &mut batchings {
        let process = batching.process;
        let own = decodings
            .iter()
            .filter(|decoding| decoding.engine == process);
        let (mut begins, mut ends): (Vec<i64>, Vec<i64>) = own
            .map(|decoding| (decoding.from_ns, decoding.to_ns))
            .unzip();
        begins.sort_unstable();
        ends.sort_unstable();
        let until = |times: &[i64], ns| times.partition_point(|time| *time <= ns);
        let is_found = |step: &&StepRecord| {
            let is_own = step.is_engine && step.process as usize == process;
            let is_prompt = step.decode_tokens == 0 && step.dur_ns() > 0;
            let ns = step.start_ns;
            is_own && is_prompt && until(&begins, ns) > until(&ends, ns)
        };
        let mut total_ns = 0.0;
        for step in steps.iter().filter(is_found) {
            batching.prompt_steps += 1;
            total_ns += step.dur_ns() as f64;
        }
        batching.prompt_step_ns = total_ns / batching.prompt_steps.max(1) as f64;
    }
    batchings
}

/// Longest time between two steps that counts for the later one. After a longer pause, nothing was recorded or nothing
/// ran.
const PAUSE_NS: i64 = 10_000_000_000;

/// Batching of each engine so far. The steps of an engine must be added in the order in which it recorded them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batchings {
    engines: BTreeMap<usize, Engine>,
}

#[derive(Clone, Debug, Default)]
struct Engine {
    found: Batching,
    last_ns: Option<i64>,
    /// Total time of steps that only decode and of steps that also prefill, each with the number of steps.
    plain: (i64, u64),
    mixed: (i64, u64),
}

impl Batchings {
    fn engine(&mut self, process: usize) -> &mut Engine {
        let engine = self.engines.entry(process).or_default();
        engine.found.process = process;
        engine
    }

    /// Adds a step. Returns the end of the step before it, unless there was a pause between them.
    pub(crate) fn add_step(&mut self, step: StepTokens) -> Option<i64> {
        let engine = self.engine(step.process);
        let found = &mut engine.found;
        found.steps += 1;
        found.prefill_tokens += step.prefill;
        found.decode_tokens += step.decode;
        let is_mixed = step.prefill > 0 && step.decode > 0;
        found.mixed_steps += u64::from(is_mixed);
        let last_ns = engine.last_ns.replace(step.ts_ns);
        // Requests that decode in this step got their previous token in the step before.
        let is_next = |last_ns: &i64| (1..PAUSE_NS).contains(&step.ts_ns.saturating_sub(*last_ns));
        let last_ns = last_ns.filter(is_next);
        if let Some(last_ns) = last_ns.filter(|_| step.decode > 0) {
            let (ns, steps) = match is_mixed {
                true => &mut engine.mixed,
                false => &mut engine.plain,
            };
            *ns = ns.saturating_add(step.ts_ns - last_ns);
            *steps += 1;
        }
        last_ns
    }

    pub(crate) fn add_speculation(&mut self, step: StepSpeculation) {
        let found = &mut self.engine(step.process).found;
        found.drafted_tokens += step.drafted;
        found.accepted_tokens += step.accepted;
    }

    pub(crate) fn finish(self) -> Vec<Batching> {
        let mean = |(ns, n): (i64, u64)| if n > 0 { ns as f64 / n as f64 } else { 0.0 };
        let engines = self.engines.into_values();
        let batching = |engine: Engine| Batching {
            decode_steps: engine.plain.1,
            decode_step_ns: mean(engine.plain),
            mixed_step_ns: mean(engine.mixed),
            ..engine.found
        };
        engines.map(batching).collect()
    }
}
