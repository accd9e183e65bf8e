//! Aligns the clocks of hosts by anchors and flows.
//!
//! If most arrows from one host to another are impossible within the maximum error of the anchors, a wall clock was wrong. Then the host is aligned by flows
//! only, if they bound its error on both sides. Otherwise, it is aligned by its anchors, and its flows contradict them. Single arrows that are impossible or
//! contradict others are excluded.

use super::bounds::{Bounds, Trend, error_ns};
use super::contradiction::Exclusions;
use super::curve::Curve;
use super::ends::{End, each_arrow};
use super::extents::ArrowExtents;
use super::guess::Extremes;
use super::slack::{Grid, Slacks};
use super::solve::{Constraints, Range, UNBOUNDED, is_bounded};
use super::suspects::suspects;
use super::{Alignment, By, Hosts};

/// Data that a host is aligned by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// Anchors, and the flows that agree with them.
    Anchors,
    /// Anchors, and the flows that agree with them, although most flows do not.
    AnchorsDespiteFlows,
    /// Flows only.
    Flows,
}

pub(super) struct Tightening<'a> {
    hosts: &'a Hosts,
    ends: &'a [End],
    trust: Vec<Trust>,
    extents: ArrowExtents,
}

impl<'a> Tightening<'a> {
    pub(super) fn new(hosts: &'a Hosts, ends: &'a [End]) -> Self {
        let trust = |number: usize| match hosts.by_anchors[number] {
            Some(_) => Trust::Anchors,
            None => Trust::Flows,
        };
        Tightening {
            extents: ArrowExtents::new(ends, hosts.list.len()),
            hosts,
            ends,
            trust: (0..hosts.list.len()).map(trust).collect(),
        }
    }

    /// Aligns each host by flows. Returns `None` for the reference and hosts without flows. The trust in the anchors of a host changes at most twice: first they
    /// are trusted, then they are not, and then they are trusted despite contradicting flows.
    pub(super) fn run(mut self) -> Vec<Option<Alignment>> {
        loop {
            let drafts = self.drafts();
            let mut slacks = self.slacks(&drafts);
            let may_be_wrong = |host: usize| self.trust[host] == Trust::Anchors;
            let is_evidence = |host: usize| self.trust[host] != Trust::AnchorsDespiteFlows;
            let (hosts, reference) = (self.trust.len(), self.hosts.reference);
            let wrong = suspects(&slacks, hosts, reference, may_be_wrong, is_evidence);
            if !wrong.is_empty() {
                for host in wrong {
                    self.trust[host] = Trust::Flows;
                }
                continue;
            }
            let errors = self.solve(&mut slacks);
            let unbounded = self.unbounded(&errors, &slacks);
            if !unbounded.is_empty() {
                for host in unbounded {
                    self.trust[host] = Trust::AnchorsDespiteFlows;
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

    /// Returns the ranges of the errors of all hosts. Contradicting arrows are excluded.
    fn solve(&self, slacks: &mut Slacks) -> Vec<Vec<Range>> {
        let mut constraints = self.constraints(slacks);
        let mut exclusions = Exclusions::default();
        loop {
            match constraints.solve() {
                Ok(errors) => return errors,
                Err(cycles) => {
                    let is_trusted = |host: usize| self.trust[host] != Trust::AnchorsDespiteFlows;
                    exclusions.exclude(&cycles, &mut constraints, slacks, is_trusted);
                }
            }
        }
    }

    /// Returns the curve of each host before it is corrected by flows: the one by its anchors, or a rough estimate.
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
        let range_ns = self.extents.range_ns(drafts).unwrap_or_default();
        let hosts = (0..drafts.len()).filter(|host| self.extents.has_arrows(*host));
        let series = hosts.count().max(self.extents.pairs.len());
        let mut slacks = Slacks::new(Grid::over(range_ns, series, self.drifts()));
        self.each_arrow_on_axis(drafts, |pair, times, allowed_ns| {
            slacks.add((pair, times), allowed_ns);
        });
        slacks
    }

    /// Returns the number of clocks whose drift contributes to the error of one host relative to another one. A draft that follows the readings of wall clocks
    /// adds its own drift.
    fn drifts(&self) -> i64 {
        let is_bent = |host: usize| self.trust[host] != Trust::Flows && self.hosts.is_bent(host);
        2 + i64::from((0..self.trust.len()).any(is_bent))
    }

    /// Calls `found` with the two hosts of each arrow, its start and end on the axis, and the maximum time by which it may go back.
    fn each_arrow_on_axis(
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
            let from_ns = self.anchor_error_ns(pair.0, times.0);
            let to_ns = self.anchor_error_ns(pair.1, times.1);
            found(pair, times, from_ns.saturating_add(to_ns));
        });
    }

    /// Returns the maximum error of a host by its anchors at a time of the axis, or `i64::MAX` if they are missing or not trusted.
    fn anchor_error_ns(&self, host: usize, at_ns: i64) -> i64 {
        match self.trust[host] {
            Trust::Flows => i64::MAX,
            _ => {
                let error_ns = self.hosts.anchor_error_ns(host, at_ns);
                error_ns.unwrap_or(i64::MAX)
            }
        }
    }

    fn constraints(&self, slacks: &Slacks) -> Constraints {
        let range = |host: usize, time: usize| match host == self.hosts.reference {
            true => (0, 0),
            false => match self.anchor_error_ns(host, slacks.grid.at_ns(time)) {
                i64::MAX => UNBOUNDED,
                error_ns => (-error_ns, error_ns),
            },
        };
        let ranges = |host: usize| match self.extents.has_arrows(host) {
            true => (0..slacks.grid.times)
                .map(|time| range(host, time))
                .collect(),
            false => Vec::new(),
        };
        let arrows = slacks.pairs.iter();
        Constraints {
            change_ns: slacks.grid.change_ns(slacks.grid.width_ns),
            hosts: (0..self.trust.len()).map(ranges).collect(),
            arrows: arrows
                .map(|((from, to), pair)| (*from, *to, pair.slack_ns.clone()))
                .collect(),
        }
    }

    /// Returns hosts that have anchors, but are not bounded by their flows alone. These are all such hosts with flows in one direction, which are never enough,
    /// or else the first one.
    fn unbounded(&self, errors: &[Vec<Range>], slacks: &Slacks) -> Vec<usize> {
        let needs_anchors = |host: &usize| {
            let has_anchors = self.hosts.by_anchors[*host].is_some();
            let is_unbounded = || {
                let mut ranges = errors[*host].iter();
                errors[*host].is_empty() || ranges.any(|range| !is_bounded(*range))
            };
            self.trust[*host] == Trust::Flows && has_anchors && is_unbounded()
        };
        let unbounded: Vec<usize> = (0..errors.len()).filter(needs_anchors).collect();
        let mut directions = vec![(false, false); errors.len()];
        for (pair, _) in slacks.pairs.iter().filter(|(_, pair)| pair.is_bounded()) {
            directions[pair.0].0 = true;
            directions[pair.1].1 = true;
        }
        let is_one_way = |host: &usize| directions[*host] != (true, true);
        let mut hosts: Vec<usize> = unbounded.iter().copied().filter(is_one_way).collect();
        if hosts.is_empty() {
            hosts.extend(unbounded.first());
        }
        hosts
    }

    /// Returns true for each host that arrows connect, directly or through other hosts, to the reference or a host with trusted anchors.
    fn connected(&self, slacks: &Slacks) -> Vec<bool> {
        let mut neighbours = vec![Vec::new(); self.trust.len()];
        for ((from, to), _) in slacks.pairs.iter().filter(|(_, pair)| pair.is_bounded()) {
            neighbours[*from].push(*to);
            neighbours[*to].push(*from);
        }
        let is_anchored =
            |host: &usize| self.trust[*host] != Trust::Flows && !neighbours[*host].is_empty();
        let mut next: Vec<usize> = (0..neighbours.len()).filter(is_anchored).collect();
        let mut connected = vec![false; neighbours.len()];
        while let Some(host) = next.pop() {
            if !std::mem::replace(&mut connected[host], true) {
                next.extend(&neighbours[host]);
            }
        }
        connected
    }

    /// Returns the alignment of each host. It prefers a constant shift of each host's trend with which no arrow goes back. If the result would be much less
    /// certain than the middles of the bounds, it uses these.
    fn place(&self, bounds: &Bounds<'_>, slacks: &Slacks) -> Vec<Option<Alignment>> {
        let numbers = 0..bounds.drafts.len();
        let connected = self.connected(slacks);
        let trend = |host: usize| match connected[host] {
            true => bounds.trend(host),
            false => Trend::shift(0),
        };
        let trends: Vec<Trend> = numbers.clone().map(trend).collect();
        let corrections: Vec<Curve> = trends.iter().map(Trend::curve).collect();
        let mut shortest = Extremes::default();
        self.each_arrow_on_axis(&bounds.drafts, |(from, to), times, allowed_ns| {
            let takes_ns = times.1.saturating_sub(times.0);
            let is_possible = takes_ns >= allowed_ns.saturating_neg();
            if is_possible && slacks.is_bounded_at((from, to), times.1) {
                let from_ns = error_ns(&corrections[from], times.0);
                let to_ns = error_ns(&corrections[to], times.1);
                let takes_ns = takes_ns.saturating_add(from_ns).saturating_sub(to_ns);
                shortest.add((from, to), takes_ns);
            }
        });
        let shifted = bounds.shifted(&trends, &shortest);
        let tight = |host: usize| {
            let (correction, uncertainty_ns) = match &shifted {
                _ if host == self.hosts.reference || !connected[host] => return None,
                Some(trends) => bounds.correction(host, &trends[host]),
                None => bounds.correction(host, &bounds.middles(host)),
            };
            let curve = bounds.drafts[host].then(&correction);
            let by_flows = self.trust[host] == Trust::Flows;
            let by_anchors = self.hosts.by_anchors[host].as_ref();
            let off_ns = |by_anchors: &Curve| {
                let (first_ns, last_ns) = self.hosts.list[host].events_ns.unwrap_or_default();
                let at_ns = first_ns + (last_ns - first_ns) / 2;
                by_anchors.at(at_ns).saturating_sub(curve.at(at_ns))
            };
            Some(Alignment {
                uncertainty_ns,
                by: if by_flows { By::Flows } else { By::Both },
                wall_off_ns: by_anchors.filter(|_| by_flows).map(off_ns),
                curve,
                ..Alignment::default()
            })
        };
        numbers.map(tight).collect()
    }
}
