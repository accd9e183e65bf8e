//! When a request changed its phase in an engine.

use crate::table::Request;

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
        let (queued_ns, end_ns) = (request.queued_ns()?, request.last_token_ns()?);
        request.finished_ns()?;
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
