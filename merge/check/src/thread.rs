//! Threads as viewers tell them apart, and those that they do not.

use super::event::shown;
use super::finding::{Findings, Place};
use super::id::Id;
use super::rule::Rule;
use std::collections::{HashMap, HashSet};

/// The pid and tid that are shown.
pub(super) type Thread = (u64, u64);

/// Events of threads 0 remembered for each process.
const PLACES: usize = 5;

/// The threads of a trace.
#[derive(Default)]
pub(super) struct Threads {
    numbers: HashMap<Thread, u32>,
    /// Processes whose main thread, or none, has events.
    with_main: HashSet<u64>,
    /// Events of thread 0 of each process, and the first of them.
    zeros: HashMap<u64, (u64, Vec<Place>)>,
}

impl Threads {
    /// Adds an event that is drawn on its thread, by pid and tid; the number of the thread that it is shown on.
    pub(super) fn add(
        &mut self,
        [pid, tid]: [Id; 2],
        place: Place,
        findings: &mut Findings,
    ) -> u32 {
        let thread = shown(pid, tid);
        if pid == Id::OutOfRange || tid == Id::OutOfRange {
            findings.add(Rule::IdOutOfRange, place);
        } else if tid == Id::Known(0) && pid.shown() != 0 {
            let (count, places) = self.zeros.entry(pid.shown()).or_default();
            *count += 1;
            if places.len() < PLACES {
                places.push(place);
            }
        } else if thread.0 == thread.1 {
            self.with_main.insert(thread.0);
        }
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        *self.numbers.entry(thread).or_insert(next)
    }

    /// Tells which threads 0 are shown as another thread.
    pub(super) fn finish(self, findings: &mut Findings) {
        let mut hidden: Vec<_> = self
            .zeros
            .into_iter()
            .filter(|(pid, _)| self.with_main.contains(pid))
            .collect();
        hidden.sort_unstable_by_key(|(pid, _)| *pid);
        for (_, (count, places)) in hidden {
            findings.add_many(Rule::TidZero, count, &places);
        }
    }
}
