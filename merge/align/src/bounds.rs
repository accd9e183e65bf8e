//! Chooses the correction of each host within the bounds of its error: a constant shift if possible, or a drift, or a curve.

use super::Hosts;
use super::curve::Curve;
use super::guess::Extremes;
use super::slack::Grid;
use super::solve::{Constraints, Range, UNBOUNDED, is_bounded, middle};
use std::ops::RangeInclusive;

/// Bounds of the errors of all hosts.
pub(super) struct Bounds<'a> {
    pub(super) hosts: &'a Hosts,
    /// For each host, true if its anchors are trusted, so that its error does not exceed theirs.
    pub(super) anchored: Vec<bool>,
    /// Uncorrected curve from the monotonic clock of each host to the axis.
    pub(super) drafts: Vec<Curve>,
    pub(super) grid: Grid,
    /// Range of the error of each host at each time.
    pub(super) errors: Vec<Vec<Range>>,
}

/// An error that changes with time: straight lines between several times of the axis, in order. A single point is a constant error.
#[derive(Clone, Debug)]
pub(super) struct Trend(Vec<(i64, i64)>);

impl Trend {
    pub(super) fn shift(shift_ns: i64) -> Trend {
        Trend(vec![(0, shift_ns)])
    }

    /// Returns the curve that corrects this error: it maps an uncorrected time to that time minus
    /// the error.
    pub(super) fn curve(&self) -> Curve {
        let points = self.0.iter();
        Curve::through(points.map(|(at, error)| (*at, at.saturating_sub(*error))))
    }
}

/// Returns by how much a host's clock is ahead (in ns) at the axis time `at_ns`, given the curve
/// that corrects it.
pub(super) fn error_ns(correction: &Curve, at_ns: i64) -> i64 {
    at_ns.saturating_sub(correction.at(at_ns))
}

impl Bounds<'_> {
    /// Returns how the error of a host changes. It prefers no change, then a constant drift, and then the middle of the bounds at each time.
    pub(super) fn trend(&self, host: usize) -> Trend {
        let is_bounded = self.is_bounded(host);
        let shift = Trend::shift(constant_error(&self.errors[host]));
        let middles = self.middles(host);
        let is_shift_good =
            || self.max_error_ns(host, &shift) <= 2 * self.max_error_ns(host, &middles) + 1_000;
        if !is_bounded || is_shift_good() {
            return Trend::shift(0);
        }
        let line = self.line(host);
        let correction = line.curve();
        let is_possible = |time: usize| {
            let (low, high) = self.errors[host][time];
            (low..=high).contains(&error_ns(&correction, self.grid.at_ns(time)))
        };
        match self.times(host).all(is_possible) {
            true => line,
            false => middles,
        }
    }

    /// Returns the middle of the bounds at each time.
    pub(super) fn middles(&self, host: usize) -> Trend {
        if !self.is_bounded(host) {
            return Trend::shift(constant_error(&self.errors[host]));
        }
        let ranges = self.errors[host].iter().enumerate();
        let mut points: Vec<(i64, i64)> = ranges
            .map(|(time, range)| (self.grid.at_ns(time), middle(*range)))
            .collect();
        // Outside of the grid, the error is constant.
        let first = points[0];
        points.insert(0, (first.0.saturating_sub(self.grid.width_ns), first.1));
        let last = points[points.len() - 1];
        points.push((last.0.saturating_add(self.grid.width_ns), last.1));
        Trend(points)
    }

    /// Returns true if the host has ranges, and all of them have both bounds.
    fn is_bounded(&self, host: usize) -> bool {
        let ranges = &self.errors[host];
        !ranges.is_empty() && ranges.iter().all(|range| is_bounded(*range))
    }

    /// Returns the straight line that fits the middles best. Each is weighted by its certainty (weighted least squares).
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

    /// Adds a constant shift to each trend, so that no arrow goes back. `shortest` has the shortest arrows, corrected by the trends. Returns `None` if there are
    /// no such shifts, or the result is much less certain than the middles of the bounds.
    pub(super) fn shifted(&self, trends: &[Trend], shortest: &Extremes) -> Option<Vec<Trend>> {
        let range = |(host, trend): (usize, &Trend)| {
            if self.errors[host].is_empty() {
                return Some(vec![UNBOUNDED]);
            }
            let errors = self.errors[host].iter().enumerate();
            let correction = trend.curve();
            let remaining = errors.map(|(time, range)| {
                let error_ns = error_ns(&correction, self.grid.at_ns(time));
                match is_bounded(*range) {
                    true => (
                        range.0.saturating_sub(error_ns),
                        range.1.saturating_sub(error_ns),
                    ),
                    false => *range,
                }
            });
            let common = remaining.reduce(|one, other| (one.0.max(other.0), one.1.min(other.1)))?;
            (common.0 <= common.1).then(|| vec![common])
        };
        let hosts = trends.iter().enumerate().map(range);
        let arrows = shortest
            .shortest()
            .map(|((from, to), takes_ns)| (from, to, vec![takes_ns]));
        let constraints = Constraints {
            change_ns: 0,
            hosts: hosts.collect::<Option<_>>()?,
            arrows: arrows.collect(),
        };
        let errors = self.fixed_errors(constraints)?;
        let shifted = trends.iter().zip(errors).map(|(trend, error_ns)| {
            let points = trend.0.iter();
            let shifted = points.map(|(at, error)| (*at, error.saturating_add(error_ns)));
            Trend(shifted.collect())
        });
        let shifted: Vec<Trend> = shifted.collect();
        let is_good = |(host, trend): (usize, &Trend)| {
            !self.is_bounded(host)
                || self.max_error_ns(host, trend)
                    <= 2 * self.max_error_ns(host, &self.middles(host)) + 1_000
        };
        shifted.iter().enumerate().all(is_good).then_some(shifted)
    }

    /// Returns a constant error for each host, so that no arrow goes back. It is the middle of the range if that has both bounds. After that, the other hosts
    /// get their only bound, one after the other.
    fn fixed_errors(&self, mut constraints: Constraints) -> Option<Vec<i64>> {
        let mut solved = constraints.solve().ok()?;
        for (host, ranges) in solved.iter().enumerate() {
            if is_bounded(ranges[0]) {
                constraints.hosts[host] = vec![(middle(ranges[0]), middle(ranges[0]))];
            }
        }
        for host in 0..solved.len() {
            if !self.errors[host].is_empty() && !self.is_bounded(host) {
                solved = constraints.solve().ok()?;
                let error_ns = middle(solved[host][0]);
                constraints.hosts[host] = vec![(error_ns, error_ns)];
            }
        }
        let errors = constraints.hosts.iter().map(|ranges| middle(ranges[0]));
        Some(errors.collect())
    }

    /// Returns the curve that corrects an error, and the maximum error of the host after that.
    pub(super) fn correction(&self, host: usize, trend: &Trend) -> (Curve, Option<i64>) {
        let curve = trend.curve();
        if !self.is_bounded(host) {
            return (curve, None);
        }
        let by_bounds_ns = self.max_error_ns(host, trend);
        let anchor_ns = self.hosts.uncertainty_ns(host);
        let by_anchors_ns = anchor_ns.filter(|_| self.anchored[host]).map(|ns| {
            let at = self.times(host).map(|time| self.grid.at_ns(time));
            let times = at.chain(self.outer_events_ns(host));
            let errors = times.map(|at_ns| error_ns(&curve, at_ns));
            let most = errors.map(i64::saturating_abs).max().unwrap_or(0);
            ns.saturating_add(most)
        });
        let least_ns = by_anchors_ns.map_or(by_bounds_ns, |ns| by_bounds_ns.min(ns));
        (curve, Some(least_ns))
    }

    /// Returns the maximum error of a host within its ranges after a trend is corrected.
    fn max_error_ns(&self, host: usize, trend: &Trend) -> i64 {
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
        let outside = self.outer_events_ns(host).map(|at_ns| {
            let beyond = self.grid.change_ns(self.grid.beyond_ns(at_ns));
            off(at_ns, ranges[self.grid.find(at_ns)]).saturating_add(beyond)
        });
        let noise_ns = match self.anchored[host] {
            true => self.hosts.noise_ns(host),
            false => 0,
        };
        outside.fold(most, i64::max).saturating_add(noise_ns)
    }

    /// Returns the times of the first and the last event on the axis that are outside of the grid.
    fn outer_events_ns(&self, host: usize) -> impl Iterator<Item = i64> {
        let (first_ns, last_ns) = self.hosts.list[host].events_ns.unwrap_or_default();
        let ends = [first_ns, last_ns].map(|ns| self.drafts[host].at(ns));
        let grid = self.grid;
        ends.into_iter()
            .filter(move |at_ns| grid.beyond_ns(*at_ns) > 0)
    }

    /// Returns the numbers of the times at which the host has events.
    fn times(&self, host: usize) -> RangeInclusive<usize> {
        let (first_ns, last_ns) = self.hosts.list[host].events_ns.unwrap_or_default();
        let find = |ns: i64| self.grid.find(self.drafts[host].at(ns));
        find(first_ns).saturating_sub(1)..=(find(last_ns) + 1).min(self.grid.times - 1)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
fn whole(ns: f64) -> i64 {
    ns as i64
}

/// Returns the constant error that fits the ranges of all times best.
fn constant_error(ranges: &[Range]) -> i64 {
    let low = ranges.iter().map(|range| range.0).max().unwrap_or(0);
    let high = ranges.iter().map(|range| range.1).min().unwrap_or(0);
    middle((low, high))
}
