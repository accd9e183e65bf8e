//! Counters of steps → what each engine put into its steps.

use crate::gather::step_record::{StepSpeculation, StepTokens};
use crate::table::Batching;
use std::collections::BTreeMap;

/// A longer time between two steps is a pause: nobody recorded, or nothing ran.
const PAUSE_NS: i64 = 10_000_000_000;

/// The engines while their steps come, those of each in the order in which it recorded them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batchings {
    of: BTreeMap<usize, Engine>,
}

#[derive(Clone, Debug, Default)]
struct Engine {
    found: Batching,
    last_ns: Option<i64>,
    /// Time up to steps with answers alone and with both, and how many there are.
    plain: (i64, u64),
    mixed: (i64, u64),
}

impl Batchings {
    fn engine(&mut self, process: usize) -> &mut Engine {
        let engine = self.of.entry(process).or_default();
        engine.found.process = process;
        engine
    }

    /// Takes a step. Returns when the step before it ended, unless there was a pause.
    pub(crate) fn take(&mut self, step: StepTokens) -> Option<i64> {
        let engine = self.engine(step.process);
        let found = &mut engine.found;
        found.steps += 1;
        found.prefill_tokens += step.prefill;
        found.decode_tokens += step.decode;
        let is_mixed = step.prefill > 0 && step.decode > 0;
        found.mixed_steps += u64::from(is_mixed);
        let last_ns = engine.last_ns.replace(step.ts_ns);
        // Answers that go on had a token in the step before.
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

    pub(crate) fn speculated(&mut self, step: StepSpeculation) {
        let found = &mut self.engine(step.process).found;
        found.drafted_tokens += step.drafted;
        found.accepted_tokens += step.accepted;
    }

    pub(crate) fn finish(self) -> Vec<Batching> {
        let mean = |(ns, n): (i64, u64)| if n > 0 { ns as f64 / n as f64 } else { 0.0 };
        let engines = self.of.into_values();
        let of = |engine: Engine| Batching {
            decode_steps: engine.plain.1,
            decode_step_ns: mean(engine.plain),
            mixed_step_ns: mean(engine.mixed),
            ..engine.found
        };
        engines.map(of).collect()
    }
}
