//! What flows between hosts say of their clocks, on top of what their anchors promise.
//!
//! If most arrows from one host to another cannot be while the anchors keep their promise, a wall clock was set wrong. Then the flows alone place the host,
//! where they bound it on both sides. Elsewhere its anchors do, and its flows contradict them. Single arrows that cannot be, or that contradict others, are
//! left out.

use super::bounds::{Bounds, Trend, error_ns};
use super::contradiction::LeftOut;
use super::curve::Curve;
use super::ends::{End, each_arrow};
use super::guess::Extremes;
use super::seen::Seen;
use super::slack::{Grid, Slacks};
use super::solve::{Known, Range, UNKNOWN, is_closed};
use super::suspects::suspects;
use super::{By, Hosts, Place};

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
    ends: &'a [End],
    trust: Vec<Trust>,
    seen: Seen,
}

impl<'a> Tightening<'a> {
    pub(super) fn new(hosts: &'a Hosts, ends: &'a [End]) -> Self {
        let trust = |number: usize| match hosts.by_anchors[number] {
            Some(_) => Trust::Anchors,
            None => Trust::Flows,
        };
        Tightening {
            seen: Seen::of(ends, hosts.list.len()),
            hosts,
            ends,
            trust: (0..hosts.list.len()).map(trust).collect(),
        }
    }

    /// Where flows put each host; `None` for the reference and without flows. The trust in the anchors of a host changes at most twice: they are trusted, then they
    /// are not, and then they are in any case.
    pub(super) fn run(mut self) -> Vec<Option<Place>> {
        loop {
            let drafts = self.drafts();
            let mut slacks = self.slacks(&drafts);
            let may_be = |host: usize| self.trust[host] == Trust::Anchors;
            let speaks = |host: usize| self.trust[host] != Trust::AnchorsInAnyCase;
            let (hosts, reference) = (self.trust.len(), self.hosts.reference);
            let wrong = suspects(&slacks, hosts, reference, may_be, speaks);
            if !wrong.is_empty() {
                for host in wrong {
                    self.trust[host] = Trust::Flows;
                }
                continue;
            }
            let errors = self.solve(&mut slacks);
            let open = self.unbounded(&errors, &slacks);
            if !open.is_empty() {
                for host in open {
                    self.trust[host] = Trust::AnchorsInAnyCase;
                }
                continue;
            }
            let anchored = self.trust.iter().map(|trust| *trust != Trust::Flows);
            let bounds = Bounds {
                hosts: self.hosts,
                anchored: anchored.collect(),
                drafts,
                grid: slacks.grid,
                errors,
            };
            return self.place(&bounds, &slacks);
        }
    }

    /// Between what the errors of all hosts are, after what contradicts itself is left out.
    fn solve(&self, slacks: &mut Slacks) -> Vec<Vec<Range>> {
        let mut known = self.known(slacks);
        let mut left_out = LeftOut::default();
        loop {
            match known.solve() {
                Ok(errors) => return errors,
                Err(rings) => {
                    let is_trusted = |host: usize| self.trust[host] != Trust::AnchorsInAnyCase;
                    left_out.leave_out(&rings, &mut known, slacks, is_trusted);
                }
            }
        }
    }

    /// Where each host is before flows tighten it: where its anchors put it, else roughly.
    fn drafts(&self) -> Vec<Curve> {
        let by_anchors = |number: usize| {
            let trusts = self.trust[number] != Trust::Flows;
            self.hosts.by_anchors[number].as_ref().filter(|_| trusts)
        };
        let numbers = 0..self.hosts.list.len();
        let shifts = numbers.clone().map(|one| by_anchors(one).map(|_| 0));
        let mut shifts: Vec<Option<i64>> = shifts.collect();
        if shifts.iter().any(Option::is_none) {
            let mut extremes = Extremes::default();
            let time = |host: usize, ns: i64| by_anchors(host).map_or(ns, |curve| curve.at(ns));
            each_arrow(self.ends, |arrow| {
                let (from, to) = arrow.pair();
                let takes_ns = time(to, arrow.to.1).saturating_sub(time(from, arrow.from.1));
                extremes.add((from, to), takes_ns);
            });
            extremes.guess(&mut shifts);
        }
        let draft = |number: usize| {
            let rough = || Curve::shift(shifts[number].unwrap_or(0));
            by_anchors(number).cloned().unwrap_or_else(rough)
        };
        numbers.map(draft).collect()
    }

    fn slacks(&self, drafts: &[Curve]) -> Slacks {
        let over = self.seen.over_ns(drafts).unwrap_or_default();
        let hosts = (0..drafts.len()).filter(|host| self.seen.has_arrows(*host));
        let rows = hosts.count().max(self.seen.pairs.len());
        let mut slacks = Slacks::new(Grid::over(over, rows, self.drifts()));
        self.each_placed(drafts, |pair, times, allowed_ns| {
            slacks.add((pair, times), allowed_ns);
        });
        slacks
    }

    /// How many clocks' drifts are in the error of one host relative to another one: a draft that bends, as the readings of wall clocks do, adds its own.
    fn drifts(&self) -> i64 {
        let bends = |host: usize| self.trust[host] != Trust::Flows && self.hosts.bends(host);
        2 + i64::from((0..self.trust.len()).any(bends))
    }

    /// Calls `found` with the hosts of each arrow that counts, when it begins and ends on the axis, and by how much it may go back.
    fn each_placed(
        &self,
        drafts: &[Curve],
        mut found: impl FnMut((usize, usize), (i64, i64), i64),
    ) {
        each_arrow(self.ends, |arrow| {
            let pair = arrow.pair();
            let times = (
                drafts[pair.0].at(arrow.from.1),
                drafts[pair.1].at(arrow.to.1),
            );
            let from_ns = self.promise_ns(pair.0, times.0);
            let to_ns = self.promise_ns(pair.1, times.1);
            found(pair, times, from_ns.saturating_add(to_ns));
        });
    }

    /// What a host may be off at a time of the axis by its anchors.
    fn promise_ns(&self, host: usize, at_ns: i64) -> i64 {
        match self.trust[host] {
            Trust::Flows => i64::MAX,
            _ => self.hosts.promise_ns(host, at_ns).unwrap_or(i64::MAX),
        }
    }

    fn known(&self, slacks: &Slacks) -> Known {
        let range = |host: usize, time: usize| match host == self.hosts.reference {
            true => (0, 0),
            false => match self.promise_ns(host, slacks.grid.at_ns(time)) {
                i64::MAX => UNKNOWN,
                promised => (-promised, promised),
            },
        };
        let of_host = |host: usize| match self.seen.has_arrows(host) {
            true => (0..slacks.grid.times)
                .map(|time| range(host, time))
                .collect(),
            false => Vec::new(),
        };
        let arrows = slacks.pairs.iter();
        Known {
            change_ns: slacks.grid.change_ns(slacks.grid.width_ns),
            hosts: (0..self.trust.len()).map(of_host).collect(),
            arrows: arrows
                .map(|((from, to), pair)| (*from, *to, pair.at.clone()))
                .collect(),
        }
    }

    /// Hosts that have anchors and flows that do not bound them without these: all with flows one way, which never do, else one.
    fn unbounded(&self, errors: &[Vec<Range>], slacks: &Slacks) -> Vec<usize> {
        let is_open = |host: &usize| {
            let has_anchors = self.hosts.by_anchors[*host].is_some();
            let lacks = || {
                let mut ranges = errors[*host].iter();
                errors[*host].is_empty() || ranges.any(|range| !is_closed(*range))
            };
            self.trust[*host] == Trust::Flows && has_anchors && lacks()
        };
        let open: Vec<usize> = (0..errors.len()).filter(is_open).collect();
        let mut ways = vec![(false, false); errors.len()];
        for (pair, _) in slacks.pairs.iter().filter(|(_, pair)| pair.has_room()) {
            ways[pair.0].0 = true;
            ways[pair.1].1 = true;
        }
        let one_way = |host: &usize| ways[*host] != (true, true);
        let mut sure: Vec<usize> = open.iter().copied().filter(one_way).collect();
        if sure.is_empty() {
            sure.extend(open.first());
        }
        sure
    }

    /// Hosts from which arrows that say anything lead to the reference or to one whose anchors count, over others or not.
    fn tied(&self, slacks: &Slacks) -> Vec<bool> {
        let mut near = vec![Vec::new(); self.trust.len()];
        for ((from, to), _) in slacks.pairs.iter().filter(|(_, pair)| pair.has_room()) {
            near[*from].push(*to);
            near[*to].push(*from);
        }
        let is_known = |host: &usize| self.trust[*host] != Trust::Flows && !near[*host].is_empty();
        let mut next: Vec<usize> = (0..near.len()).filter(is_known).collect();
        let mut tied = vec![false; near.len()];
        while let Some(host) = next.pop() {
            if !std::mem::replace(&mut tied[host], true) {
                next.extend(&near[host]);
            }
        }
        tied
    }

    /// Where each host is. One shift for each, on top of its drift, lets no arrow go back, and is good if it is nearly as certain as what follows the bounds.
    fn place(&self, bounds: &Bounds<'_>, slacks: &Slacks) -> Vec<Option<Place>> {
        let numbers = 0..bounds.drafts.len();
        let tied = self.tied(slacks);
        let trend = |host: usize| match tied[host] {
            true => bounds.trend(host),
            false => Trend::shift(0),
        };
        let trends: Vec<Trend> = numbers.clone().map(trend).collect();
        let taken: Vec<Curve> = trends.iter().map(Trend::curve).collect();
        let mut least = Extremes::default();
        self.each_placed(&bounds.drafts, |(from, to), times, allowed_ns| {
            let takes_ns = times.1.saturating_sub(times.0);
            let can_be = takes_ns >= allowed_ns.saturating_neg();
            if can_be && slacks.counts((from, to), times.1) {
                let from_ns = error_ns(&taken[from], times.0);
                let to_ns = error_ns(&taken[to], times.1);
                let takes_ns = takes_ns.saturating_add(from_ns).saturating_sub(to_ns);
                least.add((from, to), takes_ns);
            }
        });
        let shifted = bounds.shifted(&trends, &least);
        let tight = |host: usize| {
            let (taken, uncertainty_ns) = match &shifted {
                _ if host == self.hosts.reference || !tied[host] => return None,
                Some(trends) => bounds.along(host, &trends[host]),
                None => bounds.along(host, &bounds.middles(host)),
            };
            let curve = bounds.drafts[host].then(&taken);
            let by_flows = self.trust[host] == Trust::Flows;
            let by_anchors = self.hosts.by_anchors[host].as_ref();
            let off_ns = |by_anchors: &Curve| {
                let (first_ns, last_ns) = self.hosts.list[host].events_ns.unwrap_or_default();
                let at_ns = first_ns + (last_ns - first_ns) / 2;
                by_anchors.at(at_ns).saturating_sub(curve.at(at_ns))
            };
            Some(Place {
                uncertainty_ns,
                by: if by_flows { By::Flows } else { By::Both },
                wall_off_ns: by_anchors.filter(|_| by_flows).map(off_ns),
                curve,
                ..Place::default()
            })
        };
        numbers.map(tight).collect()
    }
}
