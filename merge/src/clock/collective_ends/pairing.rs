//! Checks that collectives of two hosts with the same names and numbers are really the same
//! collectives.
//!
//! If they are, each of them bounds how far one clock is ahead of the other. All of these bounds
//! overlap, and they agree with the wall clocks. Two engines with the same names have different
//! times, so their bounds contradict each other. If one host began to record later or lost some
//! collectives, its k-th collective is the other's (k + n)-th. So the bounds are also computed for
//! such shifts. If a shift fits as well, as in a loop with a fixed period, the collectives cannot
//! be matched, and none are compared.

use super::HostEnd;
use crate::align::{Hosts, drift_ns};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Minimum number of collectives that two hosts must share.
const MIN_COLLECTIVES: u32 = 8;
/// Minimum number of shared collectives for a shift to count.
const MIN_SHIFTED: u32 = 4;
/// Maximum shift to either side that is tested.
const MAX_SHIFT: usize = 128;

/// Numbers of two hosts.
type Pair = (u32, u32);

/// Compares the hosts of a group's collectives, which must be added in the order of their numbers.
#[derive(Default)]
pub(super) struct Pairings(BTreeMap<Pair, HostPair>);

impl Pairings {
    /// Adds a collective of two hosts.
    pub(super) fn add(&mut self, one: HostEnd, other: HostEnd, hosts: &Hosts) {
        let pair = self.0.entry((one.boot, other.boot)).or_default();
        pair.add(one, other, hosts);
    }

    /// Returns the pairs of hosts whose n-th collectives are certainly the same: the times of their
    /// ends fit, and do not fit if one host is some collectives ahead.
    pub(super) fn certain_pairs(self) -> BTreeSet<Pair> {
        let certain = self.0.into_iter().filter(|(_, pair)| pair.is_certain());
        certain.map(|(pair, _)| pair).collect()
    }
}

/// Two hosts in one group of collectives.
#[derive(Default)]
struct HostPair {
    /// Last collectives, the newest first.
    recent: VecDeque<(HostEnd, HostEnd)>,
    unshifted: Fit,
    /// Fit of the collectives of one host with the n-th collective before on the other, and vice
    /// versa, for n from 1.
    shifted: Vec<[Fit; 2]>,
}

impl HostPair {
    fn add(&mut self, one: HostEnd, other: HostEnd, hosts: &Hosts) {
        self.unshifted.add(one, other, hosts);
        self.shifted.resize(self.recent.len(), [Fit::default(); 2]);
        for ((older_one, older_other), fits) in self.recent.iter().zip(&mut self.shifted) {
            fits[0].add(one, *older_other, hosts);
            fits[1].add(*older_one, other, hosts);
        }
        self.recent.truncate(MAX_SHIFT - 1);
        self.recent.push_front((one, other));
    }

    /// Returns true if the ends of the n-th collectives of both hosts fit, and those of collectives
    /// with different numbers do not.
    fn is_certain(&self) -> bool {
        let mut shifted = self.shifted.iter().flatten();
        self.unshifted.holds(MIN_COLLECTIVES) && !shifted.any(|fit| fit.holds(MIN_SHIFTED))
    }
}

/// Bounds of the time by which one host's clock is ahead of another's, if certain collectives of
/// both are the same.
#[derive(Clone, Copy, Debug, Default)]
struct Fit {
    collectives: u32,
    /// A time of the first host's clock, and by how much the other clock is ahead at that time:
    /// minimum and maximum.
    bounds: Option<(i64, [i64; 2])>,
    is_refuted: bool,
}

impl Fit {
    fn holds(&self, least: u32) -> bool {
        !self.is_refuted && self.collectives >= least
    }

    fn add(&mut self, one: HostEnd, other: HostEnd, hosts: &Hosts) {
        if self.is_refuted {
            return;
        }
        let (at_ns, mut bounds) = self.bounds.unwrap_or((one.first_ns, [i64::MIN, i64::MAX]));
        let drift_ns = 2 * drift_ns(one.first_ns.saturating_sub(at_ns).saturating_abs());
        let by_walls = hosts.ahead_ns(one.boot as usize, other.boot as usize, one.first_ns);
        for [least, most] in by_walls.into_iter().chain([ahead_ns(one, other)]) {
            bounds[0] = bounds[0].max(least.saturating_sub(drift_ns));
            bounds[1] = bounds[1].min(most.saturating_add(drift_ns));
        }
        self.collectives += 1;
        self.bounds = Some((at_ns, bounds));
        self.is_refuted = bounds[0] > bounds[1];
    }
}

/// Returns the minimum and maximum time by which the other host's clock is ahead if both ended the
/// same collective. All ranks end it within the transfer time, which is no longer than any rank's
/// part.
fn ahead_ns(one: HostEnd, other: HostEnd) -> [i64; 2] {
    let transfer_ns = one.transfer_ns.min(other.transfer_ns);
    let apart_ns = |one_ns: i64, other_ns: i64| other_ns.saturating_sub(one_ns);
    [
        apart_ns(one.first_ns, other.last_ns).saturating_sub(transfer_ns),
        apart_ns(one.last_ns, other.first_ns).saturating_add(transfer_ns),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::align::{Host, Reading, Wall};

    const TRANSFER_NS: i64 = 1_000;

    /// Returns true if two hosts run the same collectives, given the first and the last end of each.
    fn is_certain(has_walls: bool, ends: impl Iterator<Item = [[i64; 2]; 2]>) -> bool {
        let reading = Reading {
            at_ns: 0,
            ahead_ns: 0,
            uncertainty_ns: 0,
        };
        let host = || Host {
            wall: Wall::from_readings(vec![reading]).filter(|_| has_walls),
            events_ns: None,
        };
        let hosts = Hosts::new(vec![host(), host()], 0, 10_000_000);
        let end = |boot, [first_ns, last_ns]: [i64; 2]| HostEnd {
            boot,
            first_ns,
            last_ns,
            transfer_ns: TRANSFER_NS,
        };
        let mut pairings = Pairings::default();
        for [one, other] in ends {
            pairings.add(end(0, one), end(1, other), &hosts);
        }
        pairings.certain_pairs().contains(&(0, 1))
    }

    /// Returns the time of a collective in a loop without a fixed period.
    fn at(nth: i64) -> i64 {
        let hash = (nth * nth)
            .cast_unsigned()
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        nth * 1_000_000 + (hash >> 40).cast_signed() % 300_000
    }

    #[test]
    fn all_collectives_must_agree() {
        let later = |by: &[i64]| {
            let ends = (0..)
                .zip(by)
                .map(|(nth, by)| [[at(nth); 2], [at(nth) + by; 2]]);
            is_certain(true, ends)
        };
        // Within two transfer times and a little drift.
        let mut by = [5_000_000; 20];
        by[10] += 2_000;
        assert!(later(&by));
        assert!(!later(&by[..7]), "too few");
        by[10] += 1_000_000;
        assert!(!later(&by));
        // Each step is small, but they add up.
        let creeping: Vec<i64> = (0..20).map(|nth| nth * 1_900).collect();
        assert!(!later(&creeping));
        // The ranks of one host must agree as well.
        let spread = |ns: i64| (0..20).map(move |nth| [[at(nth), at(nth) + ns], [at(nth); 2]]);
        assert!(is_certain(true, spread(1_900)) && !is_certain(true, spread(2_100)));
    }

    #[test]
    fn shifted_collectives_are_not_compared() {
        let shifted = |has_walls, by: i64, at: &dyn Fn(i64) -> i64| {
            is_certain(
                has_walls,
                (0..40).map(|nth| [[at(nth); 2], [at(nth + by); 2]]),
            )
        };
        assert_eq!(
            [0, 1, 17].map(|by| shifted(false, by, &at)),
            [true, false, false]
        );
        // In a loop with a fixed period each shift fits, and 20 of them are within the error of the
        // wall clocks.
        let periodic = |nth: i64| nth * 1_000_000;
        assert!(!shifted(false, 0, &periodic) && !shifted(true, 0, &periodic));
        assert!(shifted(true, 0, &|nth| nth * 30_000_000));
    }
}
