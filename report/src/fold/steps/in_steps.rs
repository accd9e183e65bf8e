//! What lies in the longest steps.

use crate::gather::name_keys::NameKey;
use crate::gather::step_record::StepRecord;
use crate::nest::NestedSlice;
use crate::table::{InStep, SlowStep};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Names that are kept of each.
const NAMES: usize = 5;

/// The longest steps while slices come.
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

    pub(crate) fn take(&mut self, slice: &NestedSlice) {
        let end_ns = slice.start_ns + slice.dur_ns;
        for (step, names) in &mut self.steps {
            let is_in =
                step.row == slice.row && step.start_ns <= slice.start_ns && end_ns <= step.end_ns.0;
            if is_in {
                *names.entry(slice.key).or_default() += slice.self_ns;
            }
        }
    }

    pub(crate) fn finish(self, keys: &[NameKey]) -> Vec<SlowStep> {
        let of = |(step, names): (StepRecord, BTreeMap<u32, i64>)| {
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
                start_ns: step.start_ns,
                dur_ns: step.dur_ns(),
                requests: step.requests as usize,
                inside,
            }
        };
        self.steps.into_iter().map(of).collect()
    }
}
