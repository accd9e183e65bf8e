//! Brings the clocks of several hosts together: by what their wall clocks showed, by the flows between them, and by the collectives that they ended together.
//!
//! In: all anchors of all recordings, and the flow events whose id is the same in every process. Out: for each boot a [`Curve`] from its monotonic clock to
//! that of the reference host, with what it may be off.
//!
//! A [`Wall`] follows the wall clock of one boot by its [`Reading`]s. The module `keep` leaves out readings that are too much or cannot be. `ends` finds the
//! arrows between hosts, and `slack` keeps the tightest ones. `solve` draws conclusions from them, and `tighten` decides what is believed where they
//! contradict.
//!
//! Only this crate knows what is assumed. A wall clock is at most `wall_error` from the truth after it was last set. A clock gains or loses at most 100
//! millionths of the time. A flow's steps and ends are never before its start. Two hosts end a collective within the time of its
//! transfer.
//! ```
//! use trace_align::{Host, Hosts, Reading, Wall};
//!
//! // Two hosts that read both of their clocks once, each to the microsecond.
//! let host = |at_ns, ahead_ns| Host {
//!     wall: Wall::of(vec![Reading { at_ns, ahead_ns, uncertainty_ns: 1_000 }]),
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
mod guess;
mod keep;
mod readings;
mod seen;
mod slack;
mod solve;
mod suspects;
mod tighten;
mod wall;

pub use curve::{Curve, clamp};
pub use keep::{drop_disordered, drop_odd, take_lone, thin};
pub use readings::{Reading, drift_ns};
pub use wall::Wall;

use ends::each_arrow;
use tighten::Tightening;

pub use ends::{End, Role};

/// A host since its last boot.
#[derive(Debug)]
pub struct Host {
    /// Its wall clock, if there are anchors.
    pub wall: Option<Wall>,
    /// Its first and its last event, by its monotonic clock.
    pub events_ns: Option<(i64, i64)>,
}

/// All hosts, and where their anchors put them.
#[derive(Debug)]
pub struct Hosts {
    /// The hosts, each since its last boot.
    pub list: Vec<Host>,
    /// The one whose monotonic clock is the axis.
    pub reference: usize,
    /// From the monotonic clock of each to the axis, as far as anchors tell.
    pub(crate) by_anchors: Vec<Option<Curve>>,
    wall_error_ns: i64,
}

/// Where a host is.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// From its monotonic clock to the axis.
    pub curve: Curve,
    /// `None` if it may be off by any time.
    pub uncertainty_ns: Option<i64>,
    /// What put it there.
    pub by: By,
    /// Arrows from and to other hosts.
    pub flows: u64,
    /// Collectives that it ended together with the first host of each.
    pub collectives: u64,
    /// Those of these arrows that go back by more than the clocks may be off.
    pub contradicting: u64,
    /// How far ahead of that its own wall clock would have put it, where flows say that this was set wrong.
    pub wall_off_ns: Option<i64>,
}

/// What puts a host where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// What its wall clock showed.
    Anchors,
    /// The flows from and to other hosts.
    Flows,
    /// Its wall clock, narrowed by flows.
    Both,
    /// Nothing: its times are left alone.
    #[default]
    Nothing,
}

impl Hosts {
    /// The hosts, put together by their anchors; each wall clock may be `wall_error_ns` from the truth.
    pub fn new(list: Vec<Host>, reference: usize, wall_error_ns: i64) -> Hosts {
        let axis = list.get(reference).and_then(|host| host.wall.as_ref());
        let by_anchors = |(number, host): (usize, &Host)| match number == reference {
            true => Some(Curve::shift(0)),
            false => Some(host.wall.as_ref()?.curve.then_back(&axis?.curve)),
        };
        Hosts {
            by_anchors: list.iter().enumerate().map(by_anchors).collect(),
            list,
            reference,
            wall_error_ns,
        }
    }

    /// What a host may be off at a time of the axis, if its anchors put it there: what either wall clock may.
    fn promise_ns(&self, host: usize, at_ns: i64) -> Option<i64> {
        if host == self.reference {
            return Some(0);
        }
        let curve = self.by_anchors[host].as_ref()?;
        let own = self.list[host].wall.as_ref()?.doubt_ns(curve.back(at_ns));
        let axis = self.list[self.reference].wall.as_ref()?.doubt_ns(at_ns);
        let doubt_ns = own.saturating_add(axis);
        Some(clamp(
            doubt_ns.saturating_add(self.wall_error_ns.saturating_mul(2)),
        ))
    }

    /// Returns how far the clock of `other` is ahead of the clock of `one` at a time of the latter, at least and at most, if their anchors say so.
    pub fn ahead_ns(&self, one: usize, other: usize, at_ns: i64) -> Option<[i64; 2]> {
        let axis_ns = self.by_anchors[one].as_ref()?.at(at_ns);
        let other_ns = self.by_anchors[other].as_ref()?.back(axis_ns);
        let doubt_ns = |host: usize, at_ns| Some(self.list[host].wall.as_ref()?.doubt_ns(at_ns));
        let doubts_ns = doubt_ns(one, at_ns)?.saturating_add(doubt_ns(other, other_ns)?);
        let off_ns = doubts_ns.saturating_add(self.wall_error_ns.saturating_mul(2));
        let ahead_ns = other_ns.saturating_sub(at_ns);
        Some([
            ahead_ns.saturating_sub(off_ns),
            ahead_ns.saturating_add(off_ns),
        ])
    }

    /// The most that a host may be off when it has events.
    fn uncertainty_ns(&self, host: usize) -> Option<i64> {
        let curve = self.by_anchors[host].as_ref()?;
        let (first_ns, last_ns) = self.list[host].events_ns.unwrap_or_default();
        let at = |ns: i64| self.promise_ns(host, curve.at(ns));
        at(first_ns).max(at(last_ns))
    }

    /// Whether where anchors put a host follows the noise of their readings.
    fn bends(&self, host: usize) -> bool {
        let curve = self.by_anchors[host].as_ref();
        curve.is_some_and(|curve| curve.as_shift().is_none())
    }

    /// By how much that noise may move a host whose place follows it.
    fn bent_ns(&self, host: usize) -> i64 {
        if !self.bends(host) {
            return 0;
        }
        let (first_ns, last_ns) = self.list[host].events_ns.unwrap_or_default();
        let read = |ns: i64| {
            let at_ns = self.by_anchors[host].as_ref()?.at(ns);
            let promise_ns = self.promise_ns(host, at_ns)?;
            Some(promise_ns.saturating_sub(self.wall_error_ns.saturating_mul(2)))
        };
        let (first, last) = (read(first_ns), read(last_ns));
        first.min(last).unwrap_or(0).max(0)
    }

    /// Where the anchors put each host.
    pub fn place(&self) -> Vec<Place> {
        let place = |(number, curve): (usize, &Option<Curve>)| Place {
            curve: curve.clone().unwrap_or_default(),
            uncertainty_ns: self.uncertainty_ns(number),
            by: curve.as_ref().map_or(By::Nothing, |_| By::Anchors),
            ..Place::default()
        };
        self.by_anchors.iter().enumerate().map(place).collect()
    }

    /// Where anchors and flows put each host.
    pub fn place_by_flows(&self, ends: &[End]) -> Vec<Place> {
        let tight = Tightening::new(self, ends).run();
        let both = self.place().into_iter().zip(tight);
        let mut places: Vec<Place> = both.map(|(place, tight)| tight.unwrap_or(place)).collect();
        count(&mut places, ends);
        places
    }
}

/// Counts the collectives and the arrows of each host, and the arrows that go back by more than the clocks may be off.
fn count(places: &mut [Place], ends: &[End]) {
    each_arrow(ends, |arrow| {
        let (from, to) = arrow.pair();
        if arrow.is_collective {
            // There are two arrows between each host and the first one.
            places[to].collectives += u64::from(from < to);
            return;
        }
        let takes_ns = |from: &Place, to: &Place| {
            to.curve
                .at(arrow.to.1)
                .saturating_sub(from.curve.at(arrow.from.1))
        };
        let takes_ns = takes_ns(&places[from], &places[to]);
        let off = [from, to].map(|host| places[host].uncertainty_ns);
        let is_against =
            matches!(off, [Some(one), Some(other)] if takes_ns < -one.saturating_add(other));
        for host in [from, to] {
            places[host].flows += 1;
            places[host].contradicting += u64::from(is_against);
        }
    });
}
