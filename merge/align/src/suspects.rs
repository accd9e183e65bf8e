//! Whose wall clock was wrong, going by which hosts have arrows between them that cannot be.

use super::slack::Slacks;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// What speaks against the wall clock of a host.
#[derive(Clone, Debug, Default)]
struct Score {
    neighbours: usize,
    /// Hosts with which most arrows of a direction cannot be.
    bad: BTreeSet<usize>,
    against: u64,
}

/// The hosts whose wall clocks are the least likely. `may_be` tells of a host whether its wall clock counts, and `speaks` whether what it cannot be with is
/// not known to be its own fault.
///
/// It is the one with the most neighbours that it cannot be with, and the fewest others; all at once that only the reference speaks against, and if that is most of its neighbours, its
/// own wall clock was wrong and no other one says where its host is.
pub(super) fn suspects(
    slacks: &Slacks,
    hosts: usize,
    reference: usize,
    may_be: impl Fn(usize) -> bool,
    speaks: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let scores = scores(slacks, hosts, speaks);
    let others = || (0..hosts).filter(|host| *host != reference && may_be(*host));
    let worst = others()
        .filter(|host| !scores[*host].bad.is_empty())
        .max_by_key(|host| scores[*host].doubt());
    let Some(worst) = worst else {
        return Vec::new();
    };
    let of_reference = &scores[reference];
    let by_reference = |host: &usize| scores[*host].bad.iter().eq([&reference]);
    if scores[worst].bad.len() > 1 {
        return vec![worst];
    }
    if of_reference.bad.len() > 1 && of_reference.bad.len() * 2 > of_reference.neighbours {
        return others()
            .filter(|host| scores[*host].neighbours > 0)
            .collect();
    }
    let only: Vec<usize> = others().filter(by_reference).collect();
    if only.is_empty() { vec![worst] } else { only }
}

impl Score {
    /// The more, the less likely it is.
    fn doubt(&self) -> (usize, Reverse<usize>, u64) {
        let bad = self.bad.len();
        (bad, Reverse(self.neighbours - bad), self.against)
    }
}

fn scores(slacks: &Slacks, hosts: usize, speaks: impl Fn(usize) -> bool) -> Vec<Score> {
    let mut scores = vec![Score::default(); hosts];
    for ((from, to), pair) in &slacks.pairs {
        let is_bad = pair.against * 2 > pair.arrows && speaks(*from) && speaks(*to);
        for (host, other) in [(*from, *to), (*to, *from)] {
            let back = slacks.pairs.contains_key(&(*to, *from));
            let is_first = from < to || !back;
            let score = &mut scores[host];
            score.neighbours += usize::from(is_first);
            if is_bad {
                score.against += pair.against;
                score.bad.insert(other);
            }
        }
    }
    scores
}
