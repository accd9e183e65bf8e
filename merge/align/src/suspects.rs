//! Finds the hosts whose wall clocks were wrong, from impossible arrows between hosts.

use super::slack::Slacks;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Evidence against the wall clock of a host.
#[derive(Clone, Debug, Default)]
struct Score {
    /// Number of hosts with arrows to or from this host.
    neighbours: usize,
    /// Neighbours for which most arrows in one direction are impossible.
    bad: BTreeSet<usize>,
    /// Number of impossible arrows.
    impossible: u64,
}

/// Returns the hosts whose wall clocks are most likely wrong. `may_be_wrong` is true for a host whose wall clock is still trusted. `is_evidence` is false for a
/// host whose impossible arrows are known to be its own fault.
///
/// The result is the host with the most bad neighbours and the fewest others. If the reference is the only bad neighbour of several hosts, the result is all of
/// them. If most neighbours of the reference are bad, its own wall clock was wrong, so that no wall clock can be compared with it, and the result is all hosts.
pub(super) fn suspects(
    slacks: &Slacks,
    hosts: usize,
    reference: usize,
    may_be_wrong: impl Fn(usize) -> bool,
    is_evidence: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let scores = scores(slacks, hosts, is_evidence);
    let candidates = || (0..hosts).filter(|host| *host != reference && may_be_wrong(*host));
    let worst = candidates()
        .filter(|host| !scores[*host].bad.is_empty())
        .max_by_key(|host| scores[*host].sort_key());
    let Some(worst) = worst else {
        return Vec::new();
    };
    let reference_score = &scores[reference];
    let only_reference_is_bad = |host: &usize| scores[*host].bad.iter().eq([&reference]);
    if scores[worst].bad.len() > 1 {
        return vec![worst];
    }
    let bad = reference_score.bad.len();
    if bad > 1 && bad * 2 > reference_score.neighbours {
        return candidates()
            .filter(|host| scores[*host].neighbours > 0)
            .collect();
    }
    let against_reference: Vec<usize> = candidates().filter(only_reference_is_bad).collect();
    match against_reference.is_empty() {
        true => vec![worst],
        false => against_reference,
    }
}

impl Score {
    /// Returns a key that is greater if the wall clock is more likely wrong.
    fn sort_key(&self) -> (usize, Reverse<usize>, u64) {
        let bad = self.bad.len();
        (bad, Reverse(self.neighbours - bad), self.impossible)
    }
}

fn scores(slacks: &Slacks, hosts: usize, is_evidence: impl Fn(usize) -> bool) -> Vec<Score> {
    let mut scores = vec![Score::default(); hosts];
    for ((from, to), pair) in &slacks.pairs {
        let is_bad = pair.impossible * 2 > pair.arrows && is_evidence(*from) && is_evidence(*to);
        for (host, other) in [(*from, *to), (*to, *from)] {
            let has_reverse = slacks.pairs.contains_key(&(*to, *from));
            let is_first = from < to || !has_reverse;
            let score = &mut scores[host];
            score.neighbours += usize::from(is_first);
            if is_bad {
                score.impossible += pair.impossible;
                score.bad.insert(other);
            }
        }
    }
    scores
}
