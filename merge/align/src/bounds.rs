//! How hosts follow the bounds of their errors: with one shift where that does, with a drift, or from time to time.

use super::Hosts;
use super::curve::Curve;
use super::guess::Extremes;
use super::slack::Grid;
use super::solve::{Known, Range, UNKNOWN, is_closed, middle};
use std::ops::RangeInclusive;

/// Between what the errors of all hosts are.
pub(super) struct Bounds<'a> {
    pub(super) hosts: &'a Hosts,
    /// Whether their anchors count, so that what these promise holds in any case.
    pub(super) anchored: Vec<bool>,
    /// From the monotonic clock of each to the axis, but for its error.
    pub(super) drafts: Vec<Curve>,
    pub(super) grid: Grid,
    /// Of each host, at each time.
    pub(super) errors: Vec<Vec<Range>>,
}

/// An error that changes with time: straight lines between some times of the axis, in their order. A single point is a constant error.
#[derive(Clone, Debug)]
pub(super) struct Trend(Vec<(i64, i64)>);

impl Trend {
    pub(super) fn shift(shift_ns: i64) -> Trend {
        Trend(vec![(0, shift_ns)])
    }

    /// What takes it off.
    pub(super) fn curve(&self) -> Curve {
        let points = self.0.iter();
        Curve::through(points.map(|(at, error)| (*at, at.saturating_sub(*error))))
    }
}

/// The error that a curve takes off at a time of the axis.
pub(super) fn error_ns(taken: &Curve, at_ns: i64) -> i64 {
    at_ns.saturating_sub(taken.at(at_ns))
}

impl Bounds<'_> {
    /// How the error of a host changes: not at all if it need not, else by a drift, else as it may.
    pub(super) fn trend(&self, host: usize) -> Trend {
        let closed = self.is_closed(host);
        let shift = Trend::shift(one(&self.errors[host]));
        let following = self.middles(host);
        if !closed || self.off_ns(host, &shift) <= 2 * self.off_ns(host, &following) + 1_000 {
            return Trend::shift(0);
        }
        let line = self.line(host);
        let taken = line.curve();
        let is_possible = |time: usize| {
            let (low, high) = self.errors[host][time];
            (low..=high).contains(&error_ns(&taken, self.grid.at_ns(time)))
        };
        match self.times(host).all(is_possible) {
            true => line,
            false => following,
        }
    }

    /// The middle of what is possible, from time to time.
    pub(super) fn middles(&self, host: usize) -> Trend {
        if !self.is_closed(host) {
            return Trend::shift(one(&self.errors[host]));
        }
        let ranges = self.errors[host].iter().enumerate();
        let mut points: Vec<(i64, i64)> = ranges
            .map(|(time, range)| (self.grid.at_ns(time), middle(*range)))
            .collect();
        // It does not go on beyond them.
        let before = points[0];
        points.insert(0, (before.0.saturating_sub(self.grid.width_ns), before.1));
        let behind = points[points.len() - 1];
        points.push((behind.0.saturating_add(self.grid.width_ns), behind.1));
        Trend(points)
    }

    /// Whether both ends of all its ranges are known, if it has any.
    fn is_closed(&self, host: usize) -> bool {
        let ranges = &self.errors[host];
        !ranges.is_empty() && ranges.iter().all(|range| is_closed(*range))
    }

    /// The straight line next to all middles, of which the most certain ones count most.
    fn line(&self, host: usize) -> Trend {
        let first_ns = self.grid.at_ns(0);
        let (mut sum, mut of_x, mut of_y, mut of_xx, mut of_xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for time in self.times(host) {
            let range = self.errors[host][time];
            let weight = 1.0 / ((range.1 - range.0) as f64 + 1.0).powi(2);
            let (x, y) = (
                (self.grid.at_ns(time) - first_ns) as f64,
                middle(range) as f64,
            );
            sum += weight;
            of_x += weight * x;
            of_y += weight * y;
            of_xx += weight * x * x;
            of_xy += weight * x * y;
        }
        let spread = sum * of_xx - of_x * of_x;
        let slope = match spread > 0.0 {
            true => (sum * of_xy - of_x * of_y) / spread,
            false => 0.0,
        };
        let begin = (of_y - slope * of_x) / sum;
        let at = |time: usize| {
            let at_ns = self.grid.at_ns(time);
            (at_ns, whole(begin + slope * (at_ns - first_ns) as f64))
        };
        Trend(vec![at(0), at(self.grid.times - 1)])
    }

    /// These trends, each with one shift on top, with which no arrow goes back; `least` tells how long arrows take at least with the trends alone.
    /// `None` if there is none, or none that is nearly as certain as what follows the bounds.
    pub(super) fn shifted(&self, trends: &[Trend], least: &Extremes) -> Option<Vec<Trend>> {
        let range = |(host, trend): (usize, &Trend)| {
            if self.errors[host].is_empty() {
                return Some(vec![UNKNOWN]);
            }
            let errors = self.errors[host].iter().enumerate();
            let taken = trend.curve();
            let left = errors.map(|(time, range)| {
                let error_ns = error_ns(&taken, self.grid.at_ns(time));
                match is_closed(*range) {
                    true => (
                        range.0.saturating_sub(error_ns),
                        range.1.saturating_sub(error_ns),
                    ),
                    false => *range,
                }
            });
            let both = left.reduce(|one, other| (one.0.max(other.0), one.1.min(other.1)))?;
            (both.0 <= both.1).then(|| vec![both])
        };
        let hosts = trends.iter().enumerate().map(range);
        let arrows = least.least();
        let arrows = arrows.map(|((from, to), least_ns)| (from, to, vec![least_ns]));
        let known = Known {
            change_ns: 0,
            hosts: hosts.collect::<Option<_>>()?,
            arrows: arrows.collect(),
        };
        let errors = self.pinned(known)?;
        let shifted = trends.iter().zip(errors).map(|(trend, error_ns)| {
            let points = trend.0.iter();
            let shifted = points.map(|(at, error)| (*at, error.saturating_add(error_ns)));
            Trend(shifted.collect())
        });
        let shifted: Vec<Trend> = shifted.collect();
        let is_good = |(host, trend): (usize, &Trend)| {
            !self.is_closed(host)
                || self.off_ns(host, trend) <= 2 * self.off_ns(host, &self.middles(host)) + 1_000
        };
        shifted.iter().enumerate().all(is_good).then_some(shifted)
    }

    /// One error for each host with which no arrow goes back: the middle where both ends are known, and then, one after the other, the end that is.
    fn pinned(&self, mut known: Known) -> Option<Vec<i64>> {
        let mut solved = known.solve().ok()?;
        let is_known = |ranges: &Vec<Range>| is_closed(ranges[0]);
        for (host, ranges) in solved.iter().enumerate() {
            if is_known(ranges) {
                known.hosts[host] = vec![(middle(ranges[0]), middle(ranges[0]))];
            }
        }
        for host in 0..solved.len() {
            if !self.errors[host].is_empty() && !self.is_closed(host) {
                solved = known.solve().ok()?;
                let error_ns = middle(solved[host][0]);
                known.hosts[host] = vec![(error_ns, error_ns)];
            }
        }
        Some(known.hosts.iter().map(|ranges| middle(ranges[0])).collect())
    }

    /// What takes an error off, and what a host may be off then.
    pub(super) fn along(&self, host: usize, trend: &Trend) -> (Curve, Option<i64>) {
        let curve = trend.curve();
        if !self.is_closed(host) {
            return (curve, None);
        }
        let off_ns = self.off_ns(host, trend);
        let promised = self.hosts.uncertainty_ns(host);
        let promised = promised.filter(|_| self.anchored[host]).map(|ns| {
            let at = self.times(host).map(|time| self.grid.at_ns(time));
            let times = at.chain(self.ends_ns(host));
            let errors = times.map(|at_ns| error_ns(&curve, at_ns));
            let most = errors.map(i64::saturating_abs).max().unwrap_or(0);
            ns.saturating_add(most)
        });
        (curve, Some(promised.map_or(off_ns, |ns| off_ns.min(ns))))
    }

    /// What a host may be off at most by its ranges, if its error is that.
    fn off_ns(&self, host: usize, trend: &Trend) -> i64 {
        let curve = trend.curve();
        let off = |at_ns: i64, (low, high): Range| {
            let error_ns = error_ns(&curve, at_ns);
            let above = high.saturating_sub(error_ns);
            above.max(error_ns.saturating_sub(low))
        };
        let ranges = &self.errors[host];
        if ranges.is_empty() {
            return 0;
        }
        let inside = self.times(host);
        let inside = inside.map(|time| off(self.grid.at_ns(time), ranges[time]));
        let between = self.grid.change_ns(self.grid.width_ns / 2 + 1);
        let most = inside.max().unwrap_or(0).saturating_add(between);
        let outside = self.ends_ns(host).map(|at_ns| {
            let beyond = self.grid.change_ns(self.grid.beyond_ns(at_ns));
            off(at_ns, ranges[self.grid.find(at_ns)]).saturating_add(beyond)
        });
        let bent_ns = match self.anchored[host] {
            true => self.hosts.bent_ns(host),
            false => 0,
        };
        outside.fold(most, i64::max).saturating_add(bent_ns)
    }

    /// When its first and its last event are, of those beyond all times.
    fn ends_ns(&self, host: usize) -> impl Iterator<Item = i64> {
        let (first_ns, last_ns) = self.hosts.list[host].events_ns.unwrap_or_default();
        let ends = [first_ns, last_ns].map(|ns| self.drafts[host].at(ns));
        let grid = self.grid;
        ends.into_iter()
            .filter(move |at_ns| grid.beyond_ns(*at_ns) > 0)
    }

    /// The times at which a host has events.
    fn times(&self, host: usize) -> RangeInclusive<usize> {
        let (first_ns, last_ns) = self.hosts.list[host].events_ns.unwrap_or_default();
        let find = |ns: i64| self.grid.find(self.drafts[host].at(ns));
        find(first_ns).saturating_sub(1)..=(find(last_ns) + 1).min(self.grid.times - 1)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "what is too large is cut off"
)]
fn whole(ns: f64) -> i64 {
    ns as i64
}

/// The one error that is nearest to being possible all the time.
fn one(ranges: &[Range]) -> i64 {
    let low = ranges.iter().map(|range| range.0).max().unwrap_or(0);
    let high = ranges.iter().map(|range| range.1).min().unwrap_or(0);
    middle((low, high))
}
