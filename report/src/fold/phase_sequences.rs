//! The phases of requests → in which order they follow each other.

use super::phase_changes::MOST_PHASES;
use crate::table::{PhaseSequence, Phases};
use std::collections::BTreeMap;

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
