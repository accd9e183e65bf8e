//! Joins the spans of each step, and finds the longest steps with the names inside them.

use crate::gather::name_keys::NameKey;
use crate::gather::step_record::StepRecord;
use crate::nest::NestedSlice;
use crate::rows::{RowSink, StepRole, StepRow};
use crate::serving_clock::ServingClock;
use crate::table::{InStep, SlowStep};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use trace_store::sorter::Sorted;

/// Maximum number of steps in a report.
const SHOWN: usize = 10;

/// Passes each step to `sink`, and returns the longest steps of workers in serving time. A span inside another step of
/// its process belongs to the same step.
pub(crate) fn steps(
    records: &Sorted<StepRecord>,
    keys: &[NameKey],
    clock: &ServingClock,
    sink: Option<&mut (dyn RowSink + '_)>,
) -> io::Result<Vec<StepRecord>> {
    let mut steps = Steps {
        keys,
        clock,
        names: BTreeMap::new(),
        sink,
        longest: Vec::new(),
    };
    let mut last: Option<StepRecord> = None;
    records.each(|record| {
        let is_within = |outer: &StepRecord| {
            let role = |step: &StepRecord| (step.process, step.is_engine);
            !record.is_engine && role(outer) == role(&record) && outer.end_ns <= record.end_ns
        };
        match &mut last {
            // The inner span may name more requests.
            Some(outer) if is_within(outer) => {
                outer.requests = outer.requests.max(record.requests);
                Ok(())
            }
            _ => last.replace(record).map_or(Ok(()), |step| steps.add(&step)),
        }
    })?;
    last.map_or(Ok(()), |step| steps.add(&step))?;
    steps.shorten();
    Ok(steps.longest)
}

struct Steps<'a, 's> {
    keys: &'a [NameKey],
    clock: &'a ServingClock,
    names: BTreeMap<u32, Arc<str>>,
    sink: Option<&'a mut (dyn RowSink + 's)>,
    longest: Vec<StepRecord>,
}

impl Steps<'_, '_> {
    fn add(&mut self, record: &StepRecord) -> io::Result<()> {
        if record.key().is_some() {
            let times = self.clock.clip((record.start_ns, record.end_ns.0));
            self.longest
                .extend(times.map(|times| record.with_times(times)));
            if self.longest.len() >= 8 * SHOWN {
                self.shorten();
            }
        }
        let Some(sink) = &mut self.sink else {
            return Ok(());
        };
        let (keys, names) = (self.keys, &mut self.names);
        let name = record.key().map(|key| {
            let name = || Arc::from(keys[key as usize].name.as_str());
            Arc::clone(names.entry(key).or_insert_with(name))
        });
        let is_worker = name.is_some();
        let tokens = |tokens: u64| (!is_worker).then_some(tokens);
        let dur_ns = record.dur_ns();
        sink.step(&StepRow {
            process: record.process as usize,
            role: match is_worker {
                true => StepRole::Worker,
                false => StepRole::Engine,
            },
            name,
            start_ns: record.start_ns,
            dur_ns: (is_worker || dur_ns > 0).then_some(dur_ns),
            requests: (record.requests > 0).then_some(record.requests.into()),
            prefill_tokens: tokens(record.prefill_tokens),
            decode_tokens: tokens(record.decode_tokens),
        })
    }

    /// Sorts the steps, and drops all but the longest.
    fn shorten(&mut self) {
        self.longest
            .sort_by_key(|step| (Reverse(step.dur_ns()), step.start_ns, step.process));
        self.longest.truncate(SHOWN);
    }
}

/// Maximum number of names listed per step.
const NAMES: usize = 5;

/// The longest steps and the names inside them, while slices are read.
pub(crate) struct InSteps {
    steps: Vec<(StepRecord, BTreeMap<u32, i64>)>,
}

impl InSteps {
    pub(crate) fn new(steps: Vec<StepRecord>) -> InSteps {
        let steps = steps.into_iter().map(|step| (step, BTreeMap::new()));
        InSteps {
            steps: steps.collect(),
        }
    }

    pub(crate) fn add(&mut self, slice: &NestedSlice) {
        let end_ns = slice.start_ns + slice.dur_ns;
        for (step, names) in &mut self.steps {
            let is_in = step.track == slice.track
                && step.start_ns <= slice.start_ns
                && end_ns <= step.end_ns.0;
            if is_in {
                *names.entry(slice.key).or_default() += slice.self_ns;
            }
        }
    }

    pub(crate) fn finish(self, keys: &[NameKey], clock: &ServingClock) -> Vec<SlowStep> {
        let slow_step = |(step, names): (StepRecord, BTreeMap<u32, i64>)| {
            let name = |key: u32| keys[key as usize].name.clone();
            let mut inside: Vec<InStep> = names
                .into_iter()
                .map(|(key, tsub_ns)| InStep {
                    name: name(key),
                    tsub_ns,
                })
                .collect();
            inside.sort_by_key(|name| Reverse(name.tsub_ns));
            inside.truncate(NAMES);
            SlowStep {
                process: step.process as usize,
                name: step.key().map(name).unwrap_or_default(),
                start_ns: clock.trace_ns(step.start_ns),
                dur_ns: step.dur_ns(),
                requests: step.requests as usize,
                inside,
            }
        };
        self.steps.into_iter().map(slow_step).collect()
    }
}
