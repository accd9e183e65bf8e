//! Aligns the clocks of several hosts by their wall clocks, by the flows between them, and by the collectives that they ended together.
//!
//! In: all anchors of all recordings, and the flow events whose id is the same in every process. Out: for each boot a [`Curve`] from its monotonic clock to
//! that of the reference host, with its uncertainty.
//!
//! A [`Wall`] describes the wall clock of one boot by its [`Reading`]s. The module `filter` removes superfluous and implausible readings. `ends` finds the
//! arrows between hosts, and `slack` stores the tightest ones. `solve` derives bounds from them, and `tighten` decides which data to trust if some of it is
//! contradictory.
//!
//! Only this crate makes assumptions about clocks. After it was last set, a wall clock is at most `wall_error` from the true time. A clock gains or loses at
//! most 100 ppm. The steps and ends of a flow are never before its start. Two hosts end a collective within the time of its transfer.
//!
//! ```
//! use trace_align::{Host, Hosts, Reading, Wall};
//!
//! // Two hosts that read both of their clocks once, each to the microsecond.
//! let host = |at_ns, ahead_ns| Host {
//!     wall: Wall::from_readings(vec![Reading { at_ns, ahead_ns, uncertainty_ns: 1_000 }]),
//!     events_ns: Some((at_ns, at_ns)),
//! };
//! let hosts = Hosts::new(vec![host(100, 5_000_000), host(700, 2_000_000)], 0, 0);
//! let places = hosts.place();
//! // The wall clocks agree, so the second monotonic clock is 3 ms ahead of the first.
//! assert_eq!(places[1].curve.at(700), 700 - 3_000_000);
//! ```

mod bounds;
mod contradiction;
mod curve;
mod ends;
mod extents;
mod filter;
mod guess;
mod readings;
mod slack;
mod solve;
mod suspects;
mod tighten;
mod wall;

pub use curve::{Curve, clamp};
pub use filter::{drop_disordered, drop_odd, remove_lone_readings, thin};
pub use readings::{Reading, drift_ns};
pub use wall::Wall;

use ends::each_arrow;
use tighten::Tightening;

pub use ends::{End, Role};

/// A host since its last boot.
#[derive(Debug)]
pub struct Host {
    /// Wall clock of the host, if there are anchors.
    pub wall: Option<Wall>,
    /// Times of the first and the last event on the host's monotonic clock.
    pub events_ns: Option<(i64, i64)>,
}

/// All hosts, aligned by their anchors.
#[derive(Debug)]
pub struct Hosts {
    /// The hosts, each since its last boot.
    pub list: Vec<Host>,
    /// Number of the host whose monotonic clock is the time axis.
    pub reference: usize,
    /// Curve from the monotonic clock of each host to the axis, if anchors determine it.
    pub(crate) by_anchors: Vec<Option<Curve>>,
    wall_error_ns: i64,
}

/// Alignment of a host with the time axis.
#[derive(Clone, Debug, Default)]
pub struct Alignment {
    /// Curve from the host's monotonic clock to the axis.
    pub curve: Curve,
    /// Maximum error of the curve, or `None` if it is unbounded.
    pub uncertainty_ns: Option<i64>,
    /// Data that determined the curve.
    pub by: By,
    /// Number of arrows from and to other hosts.
    pub flows: u64,
    /// Number of collectives that the host ended together with the first host of each.
    pub collectives: u64,
    /// Number of these arrows that go back by more than the uncertainty of the clocks.
    pub contradicting: u64,
    /// Difference between the alignment by the host's wall clock and this one, if flows show that the wall clock was wrong.
    pub wall_off_ns: Option<i64>,
}

/// Data that determined the alignment of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// The wall clock.
    Anchors,
    /// Flows from and to other hosts.
    Flows,
    /// The wall clock, refined by flows.
    Both,
    /// Nothing. The times of the host are not changed.
    #[default]
    Nothing,
}

impl Hosts {
    /// Aligns the hosts by their anchors. Each wall clock may be off by `wall_error_ns`.
    pub fn new(list: Vec<Host>, reference: usize, wall_error_ns: i64) -> Hosts {
        let axis = list.get(reference).and_then(|host| host.wall.as_ref());
        let by_anchors = |(number, host): (usize, &Host)| match number == reference {
            true => Some(Curve::shift(0)),
            false => Some(host.wall.as_ref()?.curve.then_inverse(&axis?.curve)),
        };
        Hosts {
            by_anchors: list.iter().enumerate().map(by_anchors).collect(),
            list,
            reference,
            wall_error_ns,
        }
    }

    /// Returns the maximum error of a host at a time of the axis if its anchors align it: the errors of both wall clocks together.
    fn anchor_error_ns(&self, host: usize, at_ns: i64) -> Option<i64> {
        if host == self.reference {
            return Some(0);
        }
        let curve = self.by_anchors[host].as_ref()?;
        let own_wall = self.list[host].wall.as_ref()?;
        let axis_wall = self.list[self.reference].wall.as_ref()?;
        let own_ns = own_wall.uncertainty_ns(curve.back(at_ns));
        let both_ns = own_ns.saturating_add(axis_wall.uncertainty_ns(at_ns));
        Some(clamp(
            both_ns.saturating_add(self.wall_error_ns.saturating_mul(2)),
        ))
    }

    /// Returns the minimum and the maximum time by which the clock of `other` is ahead of the clock of `one`, at a time of the latter, if there are anchors.
    pub fn ahead_ns(&self, one: usize, other: usize, at_ns: i64) -> Option<[i64; 2]> {
        let axis_ns = self.by_anchors[one].as_ref()?.at(at_ns);
        let other_ns = self.by_anchors[other].as_ref()?.back(axis_ns);
        let uncertainty_ns =
            |host: usize, at_ns| Some(self.list[host].wall.as_ref()?.uncertainty_ns(at_ns));
        let both_ns = uncertainty_ns(one, at_ns)?.saturating_add(uncertainty_ns(other, other_ns)?);
        let off_ns = both_ns.saturating_add(self.wall_error_ns.saturating_mul(2));
        let ahead_ns = other_ns.saturating_sub(at_ns);
        Some([
            ahead_ns.saturating_sub(off_ns),
            ahead_ns.saturating_add(off_ns),
        ])
    }

    /// Returns the maximum error of a host, by its anchors, while it has events.
    fn uncertainty_ns(&self, host: usize) -> Option<i64> {
        let curve = self.by_anchors[host].as_ref()?;
        let (first_ns, last_ns) = self.list[host].events_ns.unwrap_or_default();
        let at = |ns: i64| self.anchor_error_ns(host, curve.at(ns));
        at(first_ns).max(at(last_ns))
    }

    /// Returns true if the curve of a host by its anchors is not a constant shift, so that it follows the noise of the readings.
    fn is_bent(&self, host: usize) -> bool {
        let curve = self.by_anchors[host].as_ref();
        curve.is_some_and(|curve| curve.as_shift().is_none())
    }

    /// Returns the maximum error due to the noise of the readings, or 0 if the curve does not follow it.
    fn noise_ns(&self, host: usize) -> i64 {
        if !self.is_bent(host) {
            return 0;
        }
        let (first_ns, last_ns) = self.list[host].events_ns.unwrap_or_default();
        let noise_at = |ns: i64| {
            let at_ns = self.by_anchors[host].as_ref()?.at(ns);
            let error_ns = self.anchor_error_ns(host, at_ns)?;
            Some(error_ns.saturating_sub(self.wall_error_ns.saturating_mul(2)))
        };
        let (first, last) = (noise_at(first_ns), noise_at(last_ns));
        first.min(last).unwrap_or(0).max(0)
    }

    /// Returns the alignment of each host by its anchors.
    pub fn place(&self) -> Vec<Alignment> {
        let place = |(number, curve): (usize, &Option<Curve>)| Alignment {
            curve: curve.clone().unwrap_or_default(),
            uncertainty_ns: self.uncertainty_ns(number),
            by: curve.as_ref().map_or(By::Nothing, |_| By::Anchors),
            ..Alignment::default()
        };
        self.by_anchors.iter().enumerate().map(place).collect()
    }

    /// Returns the alignment of each host by anchors and flows.
    pub fn place_by_flows(&self, ends: &[End]) -> Vec<Alignment> {
        let tight = Tightening::new(self, ends).run();
        let both = self.place().into_iter().zip(tight);
        let mut places: Vec<Alignment> =
            both.map(|(place, tight)| tight.unwrap_or(place)).collect();
        count_arrows(&mut places, ends);
        places
    }
}

/// Counts the collectives and the arrows of each host, and the arrows that go back by more than the uncertainty of the clocks.
fn count_arrows(places: &mut [Alignment], ends: &[End]) {
    each_arrow(ends, |arrow| {
        let (from, to) = arrow.pair();
        if arrow.is_collective {
            // There are two arrows between each host and the first one.
            places[to].collectives += u64::from(from < to);
            return;
        }
        let takes_ns = |from: &Alignment, to: &Alignment| {
            to.curve
                .at(arrow.to.1)
                .saturating_sub(from.curve.at(arrow.from.1))
        };
        let takes_ns = takes_ns(&places[from], &places[to]);
        let uncertainties = [from, to].map(|host| places[host].uncertainty_ns);
        let is_contradicting = matches!(
            uncertainties,
            [Some(one), Some(other)] if takes_ns < -one.saturating_add(other)
        );
        for host in [from, to] {
            places[host].flows += 1;
            places[host].contradicting += u64::from(is_contradicting);
        }
    });
}
