//! What flows between hosts say of their clocks, on top of what their anchors promise.
//!
//! Where most arrows from one host to another cannot be if the anchors keep their promise, a wall clock was set wrong: then the flows alone place the host, if they
//! bound it on both sides, else its anchors do and its flows contradict them. Where single arrows cannot be, they are left out. Flows that contradict each other
//! are left out, too.

use super::Hosts;
use super::bounds::{Bounds, Trend};
use super::curve::Curve;
use super::ends::{End, each_arrow};
use super::slack::{Extremes, Grid, Slacks, change_ns, hosts as hosts_of};
use super::solve::{Known, Range, UNKNOWN, is_closed};
use crate::sorter::Sorted;
use std::collections::BTreeSet;
use std::io;

/// Hosts of which it is found out, one after the other, that their wall clocks are wrong.
const ROUNDS: usize = 64;

/// Where flows put a host.
#[derive(Clone, Debug)]
pub(super) struct Tight {
    /// From its monotonic clock to the axis.
    pub(super) curve: Curve,
    /// `None` if it may be off by any time.
    pub(super) uncertainty_ns: Option<i64>,
    /// Whether any flow leads from or to it, and whether its anchors count.
    pub(super) has_flows: bool,
    pub(super) by_anchors: bool,
}

/// What a host is placed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// Anchors, and the flows that agree with them.
    Anchors,
    /// The same, although most flows do not agree.
    AnchorsInAnyCase,
    /// Flows alone.
    Flows,
}

pub(super) struct Tightening<'a> {
    hosts: &'a Hosts,
    ends: &'a Sorted<End>,
    trust: Vec<Trust>,
    /// Hosts whose flows contradict each other, in their order.
    dropped: BTreeSet<(usize, usize)>,
}

impl<'a> Tightening<'a> {
    pub(super) fn new(hosts: &'a Hosts, ends: &'a Sorted<End>) -> Self {
        let trust = |number: usize| match hosts.by_anchors[number] {
            Some(_) => Trust::Anchors,
            None => Trust::Flows,
        };
        Tightening {
            hosts,
            ends,
            trust: (0..hosts.list.len()).map(trust).collect(),
            dropped: BTreeSet::new(),
        }
    }

    /// Where each host is; `None` if the flows say nothing that can be.
    pub(super) fn run(mut self) -> io::Result<Option<Vec<Tight>>> {
        for _ in 0..ROUNDS {
            let drafts = self.drafts()?;
            let slacks = self.slacks(&drafts)?;
            if let Some(host) = self.suspect(&slacks) {
                self.trust[host] = Trust::Flows;
                continue;
            }
            let known = self.known(&slacks, &drafts);
            let Some(errors) = known.solve() else {
                if !self.drop_contradictory(&known) {
                    break;
                }
                continue;
            };
            if let Some(host) = self.unbounded(&errors) {
                self.trust[host] = Trust::AnchorsInAnyCase;
                continue;
            }
            let bounds = Bounds {
                hosts: self.hosts,
                drafts,
                grid: slacks.grid,
                errors,
            };
            return self.place(&bounds, &slacks).map(Some);
        }
        Ok(None)
    }

    /// Where each host is before flows tighten it: where its anchors put it, else roughly.
    fn drafts(&self) -> io::Result<Vec<Curve>> {
        let by_anchors = |number: usize| {
            let trusts = self.trust[number] != Trust::Flows;
            self.hosts.by_anchors[number].as_ref().filter(|_| trusts)
        };
        let numbers = 0..self.hosts.list.len();
        let mut shifts: Vec<Option<i64>> = numbers
            .clone()
            .map(|one| by_anchors(one).map(|_| 0))
            .collect();
        if shifts.iter().any(Option::is_none) {
            let mut extremes = Extremes::default();
            let time = |host: usize, ns: i64| by_anchors(host).map_or(ns, |curve| curve.at(ns));
            each_arrow(self.ends, |arrow| {
                let (from, to) = hosts_of(&arrow);
                let takes_ns = time(to, arrow.to.1).saturating_sub(time(from, arrow.from.1));
                extremes.add((from, to), takes_ns);
            })?;
            extremes.guess(&mut shifts);
        }
        let draft = |number: usize| {
            let rough = || Curve::shift(shifts[number].unwrap_or(0));
            by_anchors(number).cloned().unwrap_or_else(rough)
        };
        Ok(numbers.map(draft).collect())
    }

    fn slacks(&self, drafts: &[Curve]) -> io::Result<Slacks> {
        let ranges = self
            .hosts
            .list
            .iter()
            .zip(drafts)
            .filter_map(|(host, draft)| {
                let (first_ns, last_ns) = host.events_ns?;
                Some((draft.at(first_ns), draft.at(last_ns)))
            });
        let over = ranges.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        let mut slacks = Slacks::new(Grid::over(over.unwrap_or_default(), drafts.len()));
        self.each_placed(drafts, |pair, times, allowed_ns| {
            slacks.add((pair, times), allowed_ns);
        })?;
        Ok(slacks)
    }

    /// Calls `found` with the hosts of each arrow that counts, when it begins and ends on the axis, and by how much it may go back.
    fn each_placed(
        &self,
        drafts: &[Curve],
        mut found: impl FnMut((usize, usize), (i64, i64), i64),
    ) -> io::Result<()> {
        each_arrow(self.ends, |arrow| {
            let pair = hosts_of(&arrow);
            if self.dropped.contains(&in_order(pair)) {
                return;
            }
            let times = (
                drafts[pair.0].at(arrow.from.1),
                drafts[pair.1].at(arrow.to.1),
            );
            let from_ns = self.promise_ns(pair.0, times.0);
            let to_ns = self.promise_ns(pair.1, times.1);
            found(pair, times, from_ns.saturating_add(to_ns));
        })
    }

    /// What a host may be off at a time of the axis by its anchors.
    fn promise_ns(&self, host: usize, at_ns: i64) -> i64 {
        match self.trust[host] {
            Trust::Flows => i64::MAX,
            _ => self.hosts.promise_ns(host, at_ns).unwrap_or(i64::MAX),
        }
    }

    /// The host whose wall clock is the least likely: most other hosts have arrows from or to it of which most cannot be.
    fn suspect(&self, slacks: &Slacks) -> Option<usize> {
        let mut scores = vec![(0_u64, 0_u64); self.trust.len()];
        for ((from, to), pair) in &slacks.pairs {
            if pair.against * 2 > pair.arrows {
                for host in [*from, *to] {
                    scores[host].0 += 1;
                    scores[host].1 += pair.against;
                }
            }
        }
        let may_be = |host: &usize| {
            let is_trusted = self.trust[*host] == Trust::Anchors;
            is_trusted && *host != self.hosts.reference && scores[*host].0 > 0
        };
        (0..scores.len())
            .filter(may_be)
            .max_by_key(|host| scores[*host])
    }

    fn known(&self, slacks: &Slacks, drafts: &[Curve]) -> Known {
        let range = |host: usize, time: usize| match host == self.hosts.reference {
            true => (0, 0),
            false => match self.promise_ns(host, slacks.grid.at_ns(time)) {
                i64::MAX => UNKNOWN,
                promised => (-promised, promised),
            },
        };
        let of_host = |host: usize| {
            (0..slacks.grid.times)
                .map(|time| range(host, time))
                .collect()
        };
        let arrows = slacks.pairs.iter();
        Known {
            change_ns: change_ns(slacks.grid.width_ns),
            hosts: (0..drafts.len()).map(of_host).collect(),
            arrows: arrows
                .map(|((from, to), pair)| (*from, *to, pair.at.clone()))
                .collect(),
        }
    }

    /// Drops the flows between hosts that contradict each other without any others; tells whether there are any.
    fn drop_contradictory(&mut self, known: &Known) -> bool {
        let pairs: BTreeSet<_> = known
            .arrows
            .iter()
            .map(|(from, to, _)| in_order((*from, *to)))
            .collect();
        let contradicts = |pair: &(usize, usize)| {
            let between = known
                .arrows
                .iter()
                .filter(|(from, to, _)| in_order((*from, *to)) == *pair);
            let times = known.hosts.first().map_or(0, Vec::len);
            let alone = Known {
                change_ns: 2 * known.change_ns,
                hosts: vec![vec![(0, 0); times], vec![UNKNOWN; times]],
                arrows: between
                    .map(|(from, to, at)| {
                        (
                            usize::from(*from == pair.1),
                            usize::from(*to == pair.1),
                            at.clone(),
                        )
                    })
                    .collect(),
            };
            alone.solve().is_none()
        };
        let before = self.dropped.len();
        self.dropped.extend(pairs.into_iter().filter(contradicts));
        self.dropped.len() > before
    }

    /// A host that has anchors and flows that do not bound it without them.
    fn unbounded(&self, errors: &[Vec<Range>]) -> Option<usize> {
        let is_one = |host: &usize| {
            let has_anchors = self.hosts.by_anchors[*host].is_some();
            let lacks = || errors[*host].iter().any(|range| !is_closed(*range));
            self.trust[*host] == Trust::Flows && has_anchors && lacks()
        };
        (0..errors.len()).find(is_one)
    }

    /// Where each host is. One shift for each, on top of its drift, lets no arrow go back, and is good if it is nearly as certain as what follows the bounds.
    fn place(&self, bounds: &Bounds<'_>, slacks: &Slacks) -> io::Result<Vec<Tight>> {
        let numbers = 0..bounds.drafts.len();
        let trends: Vec<Trend> = numbers.clone().map(|host| bounds.trend(host)).collect();
        let mut least = Extremes::default();
        self.each_placed(&bounds.drafts, |(from, to), times, allowed_ns| {
            let takes_ns = times.1.saturating_sub(times.0);
            if takes_ns >= allowed_ns.saturating_neg() {
                let (from_ns, to_ns) = (trends[from].at(times.0), trends[to].at(times.1));
                let takes_ns = takes_ns.saturating_add(from_ns).saturating_sub(to_ns);
                least.add((from, to), takes_ns);
            }
        })?;
        let shifted = bounds.shifted(&trends, least);
        let tight = |host: usize| {
            let room = |pair: &(usize, usize)| slacks.pairs[pair].has_room();
            let of_host = |pair: &&(usize, usize)| pair.0 == host || pair.1 == host;
            let has_flows = slacks.pairs.keys().filter(of_host).any(room);
            let (curve, uncertainty_ns) = match &shifted {
                _ if host == self.hosts.reference || !has_flows => {
                    (Curve::shift(0), self.hosts.uncertainty_ns(host))
                }
                Some(trends) => bounds.along(host, &trends[host]),
                None => bounds.along(host, &bounds.middles(host)),
            };
            Tight {
                curve: bounds.drafts[host].then(&curve),
                uncertainty_ns,
                has_flows,
                by_anchors: self.trust[host] != Trust::Flows,
            }
        };
        Ok(numbers.map(tight).collect())
    }
}

fn in_order(pair: (usize, usize)) -> (usize, usize) {
    (pair.0.min(pair.1), pair.0.max(pair.1))
}
