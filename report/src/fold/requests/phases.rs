//! Turns the changes of requests in engines into sequences of phases.

use crate::table::{PhaseSequence, Phases, Request};
use std::collections::BTreeMap;

/// Maximum number of phases of a sequence. Later phases are cut off.
pub(crate) const MOST_PHASES: usize = 8;
/// Maximum number of changes stored per request. It bounds the memory for endless preemptions.
const MOST_CHANGES: usize = 256;

/// A change of a request in an engine. Of several changes at the same time, the last variant counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PhaseChange {
    Queued,
    Preempted,
    /// The request was scheduled or resumed.
    Runs,
    FirstToken,
}

/// All changes of one request in an engine, in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct PhaseChanges {
    changes: Vec<(i64, PhaseChange)>,
}

impl PhaseChanges {
    pub(crate) fn add(&mut self, ts_ns: i64, change: PhaseChange) {
        // An engine may schedule a running request again in each step.
        let last = self.changes.last();
        let runs_on = last.is_some_and(|(last_ns, last)| *last == change && *last_ns <= ts_ns);
        if !runs_on && self.changes.len() < MOST_CHANGES {
            self.changes.push((ts_ns, change));
        }
    }

    /// Returns the phases from the queue to the last token, each with its duration. Returns `None` if the trace lacks
    /// the queue, the last token or the end of the request.
    pub(crate) fn phases(mut self, request: &Request) -> Option<Vec<(&'static str, i64)>> {
        let (queued_ns, end_ns) = (request.queued_ns?, request.last_token_ns?);
        request.finished_ns?;
        let first_token_ns = request.any_first_token_ns();
        let mut changes = self.changes.iter();
        let is_scheduled = changes.any(|(_, change)| *change == PhaseChange::Runs);
        self.changes.push((queued_ns, PhaseChange::Queued));
        self.changes
            .extend(first_token_ns.map(|ns| (ns, PhaseChange::FirstToken)));
        // With two clocks, events may appear to be before the queue.
        for (ts_ns, _) in &mut self.changes {
            *ts_ns = (*ts_ns).max(queued_ns);
        }
        self.changes.sort_unstable();
        let (mut phases, mut before) = (Vec::<(&str, i64)>::new(), PhaseChange::Queued);
        for (nth, (ts_ns, change)) in self.changes.iter().enumerate() {
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
            let next_ns = self.changes.get(nth + 1).map_or(end_ns, |(ns, _)| *ns);
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

/// Requests with the same sequence of phases.
#[derive(Debug, Default)]
struct SequenceTimes {
    requests: u64,
    total_ns: i64,
    phases_ns: Vec<i64>,
}

/// The sequences of all requests.
#[derive(Debug, Default)]
pub(crate) struct PhaseSequences {
    times: BTreeMap<String, SequenceTimes>,
}

impl PhaseSequences {
    /// Adds the phases of a request, each with its duration.
    pub(crate) fn add(&mut self, phases: &[(&'static str, i64)]) {
        let shown = &phases[..phases.len().min(MOST_PHASES)];
        let mut sequence: Vec<&str> = shown.iter().map(|(phase, _)| *phase).collect();
        if phases.len() > MOST_PHASES {
            sequence.push("…");
        }
        let times = self.times.entry(sequence.join(" → ")).or_default();
        times.requests += 1;
        times.phases_ns.resize(shown.len(), 0);
        for (_, ns) in phases {
            times.total_ns = times.total_ns.saturating_add(*ns);
        }
        for (sum_ns, (_, ns)) in times.phases_ns.iter_mut().zip(shown) {
            *sum_ns = sum_ns.saturating_add(*ns);
        }
    }

    pub(crate) fn finish(self) -> Phases {
        let n: u64 = self.times.values().map(|times| times.requests).sum();
        let sequence = |(sequence, times): (String, SequenceTimes)| {
            let mean = |ns: i64| ns as f64 / times.requests as f64;
            PhaseSequence {
                sequence,
                requests: times.requests,
                share: times.requests as f64 / n as f64,
                total_ns: times.total_ns,
                mean_ns: mean(times.total_ns),
                phase_mean_ns: times.phases_ns.iter().map(|ns| mean(*ns)).collect(),
            }
        };
        let mut sequences: Vec<PhaseSequence> = self.times.into_iter().map(sequence).collect();
        sequences.sort_by(|one, other| {
            (other.requests, other.total_ns)
                .cmp(&(one.requests, one.total_ns))
                .then_with(|| one.sequence.cmp(&other.sequence))
        });
        Phases { n, sequences }
    }
}
