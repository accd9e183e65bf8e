//! When requests changed their phases in engines → in which order these follow each other.

use crate::table::{PhaseSequence, Phases, Request};
use std::collections::BTreeMap;

/// Phases of a sequence; what follows is cut off.
pub(crate) const MOST_PHASES: usize = 8;
/// Changes that are kept of a request: preemptions without end are no more than that in memory.
const MOST_CHANGES: usize = 256;

/// What the engine did with a request. At one time the last of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PhaseChange {
    Queued,
    Preempted,
    /// It was scheduled, or resumed.
    Runs,
    FirstToken,
}

/// What an engine did with one request, in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct PhaseChanges {
    known: Vec<(i64, PhaseChange)>,
}

impl PhaseChanges {
    pub(crate) fn add(&mut self, ts_ns: i64, change: PhaseChange) {
        // One that runs may be scheduled in each step.
        let last = self.known.last();
        let runs_on = last.is_some_and(|(last_ns, last)| *last == change && *last_ns <= ts_ns);
        if !runs_on && self.known.len() < MOST_CHANGES {
            self.known.push((ts_ns, change));
        }
    }

    /// The phases that follow each other from the queue to the last token, each with its time. `None` if one of the two, or the request's end, is not in the trace.
    pub(crate) fn phases(mut self, request: &Request) -> Option<Vec<(&'static str, i64)>> {
        let (queued_ns, end_ns) = (request.queued_ns?, request.last_token_ns?);
        request.finished_ns?;
        let first_token_ns = request.any_first_token_ns();
        let mut changes = self.known.iter();
        let is_scheduled = changes.any(|(_, change)| *change == PhaseChange::Runs);
        self.known.push((queued_ns, PhaseChange::Queued));
        self.known
            .extend(first_token_ns.map(|ns| (ns, PhaseChange::FirstToken)));
        // Moments of two clocks may seem to be before the queue.
        for (ts_ns, _) in &mut self.known {
            *ts_ns = (*ts_ns).max(queued_ns);
        }
        self.known.sort_unstable();
        let (mut phases, mut before) = (Vec::<(&str, i64)>::new(), PhaseChange::Queued);
        for (nth, (ts_ns, change)) in self.known.iter().enumerate() {
            let phase = match change {
                PhaseChange::Queued if is_scheduled => "queue",
                PhaseChange::Queued => "queue + prefill",
                PhaseChange::Preempted => "preempted",
                PhaseChange::Runs
                    if first_token_ns.is_some_and(|ns| ns.max(queued_ns) <= *ts_ns) =>
                {
                    "decode"
                }
                PhaseChange::Runs => "prefill",
                PhaseChange::FirstToken if before == PhaseChange::Preempted => "preempted",
                PhaseChange::FirstToken => "decode",
            };
            before = *change;
            let next_ns = self.known.get(nth + 1).map_or(end_ns, |(ns, _)| *ns);
            let ns = next_ns.min(end_ns).saturating_sub(*ts_ns);
            match phases.last_mut() {
                _ if ns <= 0 => {}
                Some((last, sum_ns)) if *last == phase => *sum_ns = sum_ns.saturating_add(ns),
                _ => phases.push((phase, ns)),
            }
        }
        (!phases.is_empty()).then_some(phases)
    }
}

/// Requests of one sequence.
#[derive(Debug, Default)]
struct Taken {
    requests: u64,
    total_ns: i64,
    phases_ns: Vec<i64>,
}

/// The sequences of all requests.
#[derive(Debug, Default)]
pub(crate) struct PhaseSequences {
    taken: BTreeMap<String, Taken>,
}

impl PhaseSequences {
    /// Takes the phases of a request, each with its time.
    pub(crate) fn take(&mut self, phases: &[(&'static str, i64)]) {
        let told = &phases[..phases.len().min(MOST_PHASES)];
        let mut sequence: Vec<&str> = told.iter().map(|(phase, _)| *phase).collect();
        if phases.len() > MOST_PHASES {
            sequence.push("…");
        }
        let of = self.taken.entry(sequence.join(" → ")).or_default();
        of.requests += 1;
        of.phases_ns.resize(told.len(), 0);
        for (_, ns) in phases {
            of.total_ns = of.total_ns.saturating_add(*ns);
        }
        for (sum_ns, (_, ns)) in of.phases_ns.iter_mut().zip(told) {
            *sum_ns = sum_ns.saturating_add(*ns);
        }
    }

    pub(crate) fn finish(self) -> Phases {
        let n: u64 = self.taken.values().map(|of| of.requests).sum();
        let sequence = |(sequence, of): (String, Taken)| {
            let mean = |ns: i64| ns as f64 / of.requests as f64;
            PhaseSequence {
                sequence,
                requests: of.requests,
                share: of.requests as f64 / n as f64,
                total_ns: of.total_ns,
                mean_ns: mean(of.total_ns),
                phase_mean_ns: of.phases_ns.iter().map(|ns| mean(*ns)).collect(),
            }
        };
        let mut sequences: Vec<PhaseSequence> = self.taken.into_iter().map(sequence).collect();
        sequences.sort_by(|one, other| {
            (other.requests, other.total_ns)
                .cmp(&(one.requests, one.total_ns))
                .then_with(|| one.sequence.cmp(&other.sequence))
        });
        Phases { n, sequences }
    }
}
