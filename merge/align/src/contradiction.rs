//! Chooses the arrows to exclude if arrows contradict each other, between two hosts or in a cycle of several.

use super::slack::Slacks;
use super::solve::{Constraints, Cycle, UNBOUNDED_NS};
use std::collections::{BTreeMap, BTreeSet};

/// Number of times before and after a time that it is compared with.
const NEAR: usize = 8;
/// Number of exclusions of one pair after which an exclusion covers twice as many times.
const PAIR_EXCLUSIONS: usize = 8;
/// Number of searches after which an exclusion covers twice as many times.
const SEARCHES: usize = 64;

type HostPair = (usize, usize);

#[derive(Debug, Default)]
pub(super) struct Exclusions {
    /// For each pair, the number of exclusions, and the number of times with a slack before the first one.
    pairs: BTreeMap<HostPair, (usize, usize)>,
    searches: usize,
}

impl Exclusions {
    /// Excludes one arrow of each cycle. It prefers an arrow of a host that is not trusted, and then the one that differs most from the arrows before and
    /// after it.
    pub(super) fn exclude(
        &mut self,
        cycles: &[Cycle],
        constraints: &mut Constraints,
        slacks: &mut Slacks,
        is_trusted: impl Fn(usize) -> bool,
    ) {
        self.searches += 1;
        let worst: BTreeSet<(usize, usize)> = cycles
            .iter()
            .filter_map(|cycle| {
                let slack = |(arrow, time): &(usize, usize)| constraints.arrows[*arrow].2[*time];
                let missing_ns = cycle.iter().map(slack).fold(0, i64::saturating_sub);
                let arrows = cycle.iter().copied();
                arrows.max_by_key(|(arrow, time)| {
                    let (from, to, arrow_slacks) = &constraints.arrows[*arrow];
                    let is_doubtful = !is_trusted(*from) || !is_trusted(*to);
                    let excess_ns = excess(arrow_slacks, *time);
                    // An arrow that cannot be compared may be right if another one alone explains the contradiction.
                    let explains = excess_ns < UNBOUNDED_NS && excess_ns >= missing_ns;
                    (is_doubtful, explains, excess_ns, -arrow_slacks[*time])
                })
            })
            .collect();
        for (arrow, time) in worst {
            self.exclude_at(arrow, time, constraints, slacks);
        }
    }

    /// Excludes an arrow at one time, and at more times if the pair has often contradicted others. If most times of the pair are excluded, all arrows between
    /// the two hosts are.
    fn exclude_at(
        &mut self,
        arrow: usize,
        time: usize,
        constraints: &mut Constraints,
        slacks: &mut Slacks,
    ) {
        let (from, to, arrow_slacks) = &constraints.arrows[arrow];
        let (from, to) = (*from, *to);
        let bounded = |time: &usize| arrow_slacks[*time] < UNBOUNDED_NS;
        let bounded_times = || (0..arrow_slacks.len()).filter(bounded);
        let left = bounded_times().count();
        let by_searches = self.searches / SEARCHES;
        let (exclusions, before) = self.pairs.entry((from, to)).or_insert((0, left));
        *exclusions += 1;
        let many = 1 << (*exclusions / PAIR_EXCLUSIONS).max(by_searches).min(16);
        let is_useless = left > 1 && (left - 1) * 2 < *before && *before > 2 * NEAR;
        let mut times = vec![time];
        if many > 1 {
            let mut worst: Vec<_> = bounded_times()
                .map(|time| (excess(arrow_slacks, time), time))
                .collect();
            worst.sort_unstable();
            times.extend(worst.iter().rev().take(many - 1).map(|(_, time)| *time));
        }
        for (one, other, arrow_slacks) in &mut constraints.arrows {
            let is_same = (*one, *other) == (from, to);
            if !is_same && (!is_useless || (*one, *other) != (to, from)) {
                continue;
            }
            match is_useless {
                true => arrow_slacks.fill(UNBOUNDED_NS),
                false => times
                    .iter()
                    .for_each(|time| arrow_slacks[*time] = UNBOUNDED_NS),
            }
            if let Some(pair) = slacks.pairs.get_mut(&(*one, *other)) {
                pair.slack_ns.copy_from_slice(arrow_slacks);
            }
        }
    }
}

/// Returns by how much less time an arrow takes than the arrows before and after it usually do.
fn excess(slacks: &[i64], time: usize) -> i64 {
    let is_bounded = |slack: &&i64| **slack < UNBOUNDED_NS;
    let before = slacks[..time].iter().rev().filter(is_bounded).take(NEAR);
    let after = slacks[time + 1..].iter().filter(is_bounded).take(NEAR);
    let mut near: Vec<i64> = before.chain(after).copied().collect();
    near.sort_unstable();
    let usual = near.get(near.len() / 4);
    usual.map_or(UNBOUNDED_NS, |usual| usual.saturating_sub(slacks[time]))
}
