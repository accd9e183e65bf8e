//! The longest steps of workers.

use std::cmp::Reverse;

/// Steps that are kept. One may lie in others of its process, which are the same step.
const MOST: usize = 64;
/// Steps that a report has.
const SHOWN: usize = 10;

/// A step of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepRecord {
    pub(crate) process: usize,
    pub(crate) row: u64,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// What it is counted as, by its number among the keys.
    pub(crate) key: u32,
    /// How many requests it is of; 0 if nothing tells.
    pub(crate) requests: usize,
}

/// The longest steps that came.
#[derive(Debug, Default)]
pub(crate) struct SlowSteps {
    steps: Vec<StepRecord>,
}

impl StepRecord {
    fn dur_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Whether another one has it within itself.
    fn is_in(&self, other: &StepRecord) -> bool {
        self.process == other.process
            && other.start_ns <= self.start_ns
            && self.end_ns <= other.end_ns
    }
}

impl SlowSteps {
    pub(crate) fn add(&mut self, step: StepRecord) {
        self.steps.push(step);
        if self.steps.len() >= 2 * MOST {
            self.sort();
            self.steps.truncate(MOST);
        }
    }

    /// Adds those of a chunk, whose keys have other numbers here.
    pub(crate) fn take(&mut self, others: SlowSteps, numbers: &[u32]) {
        for step in others.steps {
            let key = numbers[step.key as usize];
            self.add(StepRecord { key, ..step });
        }
    }

    fn sort(&mut self) {
        let by = |step: &StepRecord| (Reverse(step.dur_ns()), step.start_ns, step.process);
        self.steps.sort_by_key(by);
    }

    /// The longest ones, none of which lies in another.
    pub(crate) fn finish(mut self) -> Vec<StepRecord> {
        self.sort();
        let mut kept: Vec<StepRecord> = Vec::new();
        for step in self.steps {
            match kept.iter_mut().find(|other| step.is_in(other)) {
                // The inner one may know of more requests.
                Some(other) => other.requests = other.requests.max(step.requests),
                None => kept.push(step),
            }
        }
        kept.truncate(SHOWN);
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(process: usize, start_ns: i64, end_ns: i64, requests: usize) -> StepRecord {
        StepRecord {
            process,
            row: 0,
            start_ns,
            end_ns,
            key: 0,
            requests,
        }
    }

    #[test]
    fn the_longest_are_kept_and_those_in_them_are_not() {
        let (mut chunk, mut all) = (SlowSteps::default(), SlowSteps::default());
        for nth in 0..500 {
            chunk.add(step(1, nth * 1_000, nth * 1_000 + 10 + nth % 100, 0));
        }
        chunk.add(step(1, 7_100, 7_900, 0));
        chunk.add(step(1, 7_101, 7_899, 4));
        chunk.add(step(2, 7_101, 7_899, 3));
        all.take(chunk, &[9]);
        let found = all.finish();
        assert_eq!(found.len(), SHOWN);
        let of = |step: &StepRecord| (step.process, step.dur_ns(), step.requests, step.key);
        assert_eq!(
            [of(&found[0]), of(&found[1])],
            [(1, 800, 4, 9), (2, 798, 3, 9)]
        );
        assert_eq!(found[2].dur_ns(), 109);
    }
}
