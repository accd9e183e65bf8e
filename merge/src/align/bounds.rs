//! How hosts follow the bounds of their errors: with one shift where that does, with a drift, or from time to time.

use super::Hosts;
use super::curve::Curve;
use super::slack::{Extremes, Grid, change_ns};
use super::solve::{Known, Range, is_closed, middle};
use std::ops::RangeInclusive;

/// Between what the errors of all hosts are.
pub(super) struct Bounds<'a> {
    pub(super) hosts: &'a Hosts,
    /// From the monotonic clock of each to the axis, but for its error.
    pub(super) drafts: Vec<Curve>,
    pub(super) grid: Grid,
    /// Of each host, at each time.
    pub(super) errors: Vec<Vec<Range>>,
}

/// An error that changes with time: straight lines between some times of the axis.
#[derive(Clone, Debug)]
pub(super) struct Trend {
    /// In the order of their times.
    points: Vec<(i64, i64)>,
    shift_ns: i64,
}

impl Trend {
    fn shift(shift_ns: i64) -> Trend {
        let points = Vec::new();
        Trend { points, shift_ns }
    }

    /// The error at a time of the axis.
    pub(super) fn at(&self, at_ns: i64) -> i64 {
        at_ns - self.curve().at(at_ns)
    }

    /// What takes it off.
    fn curve(&self) -> Curve {
        if self.points.is_empty() {
            return Curve::shift(-self.shift_ns);
        }
        let points = self.points.iter();
        Curve::through(points.map(|(at, error)| (*at, at - error - self.shift_ns)))
    }
}

impl Bounds<'_> {
    /// How the error of a host changes: not at all if it need not, else by a drift, else as it may.
    pub(super) fn trend(&self, host: usize) -> Trend {
        let closed = self.errors[host].iter().all(|range| is_closed(*range));
        let shift = Trend::shift(one(&self.errors[host]));
        let following = self.middles(host);
        if !closed || self.off_ns(host, &shift) <= 2 * self.off_ns(host, &following) + 1_000 {
            return Trend::shift(0);
        }
        let line = self.line(host);
        let is_possible = |time: usize| {
            let (low, high) = self.errors[host][time];
            (low..=high).contains(&line.at(self.grid.at_ns(time)))
        };
        match self.times(host).all(is_possible) {
            true => line,
            false => following,
        }
    }

    /// The middle of what is possible, from time to time.
    pub(super) fn middles(&self, host: usize) -> Trend {
        let ranges = self.errors[host].iter().enumerate();
        if !self.errors[host].iter().all(|range| is_closed(*range)) {
            return Trend::shift(one(&self.errors[host]));
        }
        Trend {
            points: ranges
                .map(|(time, range)| (self.grid.at_ns(time), middle(*range)))
                .collect(),
            shift_ns: 0,
        }
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
        Trend {
            points: vec![at(0), at(self.grid.times - 1)],
            shift_ns: 0,
        }
    }

    /// These trends, each with one shift on top, with which no arrow goes back; `least` tells how long arrows take at least with the trends alone.
    /// `None` if there is none, or none that is nearly as certain as what follows the bounds.
    pub(super) fn shifted(&self, trends: &[Trend], least: Extremes) -> Option<Vec<Trend>> {
        let range = |(host, trend): (usize, &Trend)| {
            let errors = self.errors[host].iter().enumerate();
            let left = errors.map(|(time, range)| {
                let error_ns = trend.at(self.grid.at_ns(time));
                match is_closed(*range) {
                    true => (range.0 - error_ns, range.1 - error_ns),
                    false => *range,
                }
            });
            let both = left.reduce(|one, other| (one.0.max(other.0), one.1.min(other.1)))?;
            (both.0 <= both.1).then(|| vec![both])
        };
        let arrows = least.0.into_iter();
        let known = Known {
            change_ns: 0,
            hosts: trends
                .iter()
                .enumerate()
                .map(range)
                .collect::<Option<_>>()?,
            arrows: arrows
                .map(|((from, to), least_ns)| (from, to, vec![least_ns]))
                .collect(),
        };
        let solved = known.solve()?;
        let shift = |ranges: &Vec<Range>| ranges.first().copied().map_or(0, middle);
        let shifted = trends.iter().zip(&solved).map(|(trend, ranges)| Trend {
            shift_ns: trend.shift_ns + shift(ranges),
            ..trend.clone()
        });
        let shifted: Vec<Trend> = shifted.collect();
        let is_good = |(host, trend): (usize, &Trend)| {
            let closed = self.errors[host].iter().all(|range| is_closed(*range));
            !closed
                || self.off_ns(host, trend) <= 2 * self.off_ns(host, &self.middles(host)) + 1_000
        };
        shifted.iter().enumerate().all(is_good).then_some(shifted)
    }

    /// What takes an error off, and what a host may be off then.
    pub(super) fn along(&self, host: usize, trend: &Trend) -> (Curve, Option<i64>) {
        let closed = self.errors[host].iter().all(|range| is_closed(*range));
        (trend.curve(), closed.then(|| self.off_ns(host, trend)))
    }

    /// What a host may be off at most, if its error is that.
    fn off_ns(&self, host: usize, trend: &Trend) -> i64 {
        let curve = trend.curve();
        let off = self.times(host).map(|time| {
            let (low, high) = self.errors[host][time];
            let at_ns = self.grid.at_ns(time);
            let error_ns = at_ns - curve.at(at_ns);
            high.saturating_sub(error_ns)
                .max(error_ns.saturating_sub(low))
        });
        let between = change_ns(self.grid.width_ns / 2 + 1);
        off.max().unwrap_or(0).saturating_add(between)
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
