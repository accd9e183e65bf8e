//! Checks whether collectives of two hosts that have the same names and numbers are the same collectives.
//!
//! If they are, each of them bounds how far one clock is ahead of the other, and all of these bounds have something in common, also with the wall clocks. Two
//! engines with the same names have different times, so their bounds contradict each other. If one host began to record later or lost some collectives, its
//! k-th is the other's (k + n)-th. So the bounds are also computed for such shifts. If one of these fits as well, as in a loop with a fixed period, it is
//! unknown which collectives belong together, and none are compared.

use super::HostEnd;
use crate::align::{Hosts, drift_ns};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Collectives that two hosts must have in common.
const LEAST: u32 = 8;
/// With fewer collectives in common, a shift says nothing.
const LEAST_SHIFTED: u32 = 4;
/// Shifts to either side that are tested.
const SHIFTS: usize = 128;

/// Two hosts, by their numbers.
type Pair = (u32, u32);

/// Compares the hosts of a group's collectives, which must come sorted by number.
#[derive(Default)]
pub(super) struct Pairings(BTreeMap<Pair, HostPair>);

impl Pairings {
    /// Adds a collective of two hosts.
    pub(super) fn add(&mut self, one: HostEnd, other: HostEnd, hosts: &Hosts) {
        let pair = self.0.entry((one.boot, other.boot)).or_default();
        pair.add(one, other, hosts);
    }

    /// Returns the pairs of hosts that run the same collectives.
    pub(super) fn certain(self) -> BTreeSet<Pair> {
        let certain = self.0.into_iter().filter(|(_, pair)| pair.is_certain());
        certain.map(|(pair, _)| pair).collect()
    }
}

/// Two hosts in one group of collectives.
#[derive(Default)]
struct HostPair {
    /// The last collectives, the newest first.
    recent: VecDeque<(HostEnd, HostEnd)>,
    unshifted: Fit,
    /// How well the collectives of one host fit the n-th collective before on the other, and the other way round, for n from 1.
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
        self.recent.truncate(SHIFTS - 1);
        self.recent.push_front((one, other));
    }

    /// Returns true if the collectives fit without a shift, and with no other one.
    fn is_certain(&self) -> bool {
        let mut shifted = self.shifted.iter().flatten();
        self.unshifted.holds(LEAST) && !shifted.any(|fit| fit.holds(LEAST_SHIFTED))
    }
}

/// The bounds of the time by which one host's clock is ahead of another's, if certain collectives of both are the same.
#[derive(Clone, Copy, Debug, Default)]
struct Fit {
    collectives: u32,
    /// A time of the first host's clock, and the least and the most that the other clock is ahead at that time.
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

/// Returns how far the other host's clock is ahead, at least and at most, if both ended the same collective. All of their ranks end it within the time of the
/// transfer, which is no longer than any rank's part.
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

    /// Two hosts, whose wall clocks say that both began at the same time.
    fn hosts(has_walls: bool) -> Hosts {
        let host = || Host {
            wall: Wall::of(vec![Reading {
                at_ns: 0,
                ahead_ns: 0,
                uncertainty_ns: 0,
            }])
            .filter(|_| has_walls),
            events_ns: None,
        };
        Hosts::new(vec![host(), host()], 0, 10_000_000)
    }

    fn end(boot: u32, times: [i64; 2]) -> HostEnd {
        HostEnd {
            boot,
            first_ns: times[0],
            last_ns: times[1],
            transfer_ns: TRANSFER_NS,
        }
    }

    fn is_certain_of(hosts: &Hosts, ends: impl Iterator<Item = [[i64; 2]; 2]>) -> bool {
        let mut pairings = Pairings::default();
        for [one, other] in ends {
            pairings.add(end(0, one), end(1, other), hosts);
        }
        pairings.certain().contains(&(0, 1))
    }

    /// Returns the time of a collective in a loop without a fixed period.
    fn at(nth: i64) -> i64 {
        let scattered = (nth * nth)
            .cast_unsigned()
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> 40;
        nth * 1_000_000 + (scattered % 300_000).cast_signed()
    }

    /// Returns whether both hosts have the same collectives, where the second ends them by this much later.
    fn is_certain(later_ns: &[i64]) -> bool {
        let ends = (0..).zip(later_ns);
        let ends = ends.map(|(nth, later_ns)| [[at(nth); 2], [at(nth) + later_ns; 2]]);
        is_certain_of(&hosts(true), ends)
    }

    #[test]
    fn all_collectives_must_agree() {
        // Two transfers and little drift.
        let mut later_ns = [5_000_000; 20];
        later_ns[10] += 2_000;
        assert!(is_certain(&later_ns));
        assert!(!is_certain(&later_ns[..7]), "too few");
        later_ns[10] += 1_000_000;
        assert!(!is_certain(&later_ns));
        // Each step is small, but they add up.
        let creeping: Vec<i64> = (0..20).map(|nth| nth * 1_900).collect();
        assert!(!is_certain(&creeping));
    }

    #[test]
    fn shifted_collectives_are_not_compared() {
        let shifted = |hosts: &Hosts, by: i64, at: &dyn Fn(i64) -> i64| {
            let ends = (0..40).map(|nth| [[at(nth); 2], [at(nth + by); 2]]);
            is_certain_of(hosts, ends)
        };
        let without_walls = hosts(false);
        assert!(shifted(&without_walls, 0, &at));
        assert!(!shifted(&without_walls, 1, &at));
        assert!(!shifted(&without_walls, 17, &at));
        // In a loop with a fixed period each shift fits.
        let periodic = |nth: i64| nth * 1_000_000;
        assert!(!shifted(&without_walls, 0, &periodic));
        assert!(
            !shifted(&hosts(true), 0, &periodic),
            "20 of them are within what the wall clocks may be off"
        );
        assert!(shifted(&hosts(true), 0, &|nth| nth * 30_000_000));
    }

    #[test]
    fn ranks_of_one_host_must_agree() {
        let ends =
            |spread_ns: i64| (0..20).map(move |nth| [[at(nth), at(nth) + spread_ns], [at(nth); 2]]);
        assert!(is_certain_of(&hosts(true), ends(1_900)));
        assert!(!is_certain_of(&hosts(true), ends(2_100)));
    }
}
