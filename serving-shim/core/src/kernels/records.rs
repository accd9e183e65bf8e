//! The records of a device that belong to no launch yet, and whose they are.

use super::sought::{Offset, Sought};
use crate::mspti::Kernel;
use std::collections::{BTreeMap, BTreeSet};

/// Most records that are kept.
const MAX_RECORDS: usize = 1 << 17;
/// A record that long before the last one belongs to no launch that is recorded.
const OLD_NS: i64 = 5_000_000_000;
/// Times of one device agree within a tick at either end, and what single precision makes of ms.
const SLACK_NS: i64 = 200;
/// Graphs whose kernels are remembered.
const MAX_GRAPHS: usize = 4096;

/// A record's place: its start, and a number for those that start together.
pub(super) type Key = (i64, u64);

/// The records.
#[derive(Debug, Default)]
pub(super) struct Records {
    by_start: BTreeMap<Key, Kernel>,
    taken: u64,
    /// Streams that something was launched into: no graph's own.
    launched: BTreeSet<u32>,
    /// The correlations of a graph's kernels, once they are known.
    own: BTreeMap<usize, BTreeSet<u64>>,
}

impl Records {
    /// Takes records over; how many old ones are given up.
    pub(super) fn take(&mut self, kernels: Vec<Kernel>) -> u64 {
        for kernel in kernels {
            self.taken += 1;
            self.by_start.insert((kernel.start_ns, self.taken), kernel);
        }
        let mut gone = 0;
        while let Some((first, last)) = self.bounds()
            && (self.by_start.len() > MAX_RECORDS || first < last - OLD_NS)
        {
            self.by_start.pop_first();
            gone += 1;
        }
        gone
    }

    fn bounds(&self) -> Option<(i64, i64)> {
        let (first, _) = self.by_start.first_key_value()?;
        let (last, _) = self.by_start.last_key_value()?;
        Some((first.0, last.0))
    }

    /// Something was launched into a stream.
    pub(super) fn launched(&mut self, stream: u32) {
        self.launched.insert(stream);
    }

    /// Whether these are surely of one launch. Kernels of a graph are known, or were captured one after the other: their correlations follow one another.
    pub(super) fn are_sure(&self, sought: &Sought, kernels: &[(Key, &Kernel)]) -> bool {
        let is_known = |graph| self.own.contains_key(&graph);
        if sought.graph.is_none_or(is_known) {
            return true;
        }
        let ids = || kernels.iter().map(|(_, kernel)| kernel.correlation);
        let (first, last) = (ids().min().unwrap_or(0), ids().max().unwrap_or(0));
        sought
            .expected
            .is_some_and(|expected| last - first < expected as u64)
    }

    /// All kernels of a launch were found: these. Whether it is now known what its graph has, and was not before.
    pub(super) fn learn(&mut self, sought: &Sought, kernels: &[Kernel]) -> bool {
        let Some(graph) = sought.graph else {
            return false;
        };
        if self.own.len() >= MAX_GRAPHS || self.own.contains_key(&graph) {
            return false;
        }
        let ids = kernels.iter().map(|kernel| kernel.correlation);
        let ids: BTreeSet<u64> = ids.collect();
        self.own.insert(graph, ids);
        true
    }

    /// Whether a record may be one of a launch's.
    fn may_be(&self, kernel: &Kernel, sought: &Sought) -> bool {
        let is_own = sought.graph.and_then(|graph| self.own.get(&graph));
        match (sought.graph, is_own) {
            (None, _) => kernel.stream == sought.stream,
            (Some(_), Some(own)) => own.contains(&kernel.correlation),
            (Some(_), None) => {
                kernel.stream == sought.stream || !self.launched.contains(&kernel.stream)
            }
        }
    }

    /// The records that can be a launch's, if the offset is one of these; by their start.
    pub(super) fn of(&self, sought: &Sought, offset: Offset) -> Vec<(Key, &Kernel)> {
        let offset = offset.wider(SLACK_NS);
        let first = sought.start_ns.saturating_add(offset.low_ns);
        let last = sought.end_ns.saturating_add(offset.high_ns);
        let near = self
            .by_start
            .range((first, 0)..=(last.max(first), u64::MAX));
        near.map(|(key, kernel)| (*key, kernel))
            .filter(|(_, kernel)| sought.offset(kernel).and(offset).is_possible())
            .filter(|(_, kernel)| self.may_be(kernel, sought))
            .collect()
    }

    /// The records that begin within this reach of a launch, if MSPTI's clock is right; by their start.
    pub(super) fn near(&self, sought: &Sought, reach_ns: i64) -> Vec<&Kernel> {
        let first = sought.start_ns + sought.prior_ns - reach_ns;
        let last = sought.end_ns + sought.prior_ns + reach_ns;
        let near = self
            .by_start
            .range((first, 0)..=(last.max(first), u64::MAX));
        near.map(|(_, kernel)| kernel)
            .filter(|kernel| self.may_be(kernel, sought))
            .collect()
    }

    /// Takes a record out.
    pub(super) fn remove(&mut self, key: Key) -> Option<Kernel> {
        self.by_start.remove(&key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(stream: u32, start_ns: i64) -> Kernel {
        Kernel {
            device: 0,
            stream,
            start_ns,
            end_ns: start_ns + 10,
            correlation: start_ns.unsigned_abs(),
            name: "k".into(),
        }
    }

    fn replay(graph: usize) -> Sought {
        Sought {
            start_ns: 0,
            end_ns: 1000,
            stream: 1,
            graph: Some(graph),
            expected: Some(2),
            prior_ns: 0,
        }
    }

    const NONE: Offset = Offset {
        low_ns: 0,
        high_ns: 0,
    };

    fn streams(records: &Records, sought: &Sought) -> Vec<u32> {
        let found = records.of(sought, NONE).into_iter();
        found.map(|(_, kernel)| kernel.stream).collect()
    }

    #[test]
    fn a_replay_has_no_kernel_of_a_stream_that_others_launch_into() {
        let mut records = Records::default();
        records.launched(1);
        records.launched(2);
        records.take(vec![
            kernel(2, 100),
            kernel(8, 200),
            kernel(9, 300),
            kernel(1, 400),
        ]);
        assert_eq!(streams(&records, &replay(5)), [8, 9, 1]);
        assert!(records.learn(&replay(5), &[kernel(9, 300)]));
        assert!(!records.learn(&replay(5), &[kernel(8, 200)]), "it is known");
        assert_eq!(streams(&records, &replay(5)), [9]);
        assert_eq!(streams(&records, &replay(6)), [8, 9, 1]);
        let alone = Sought {
            graph: None,
            ..replay(0)
        };
        assert_eq!(streams(&records, &alone), [1]);
    }

    #[test]
    fn kernels_that_were_not_captured_one_after_the_other_are_not_of_one_graph() {
        let mut records = Records::default();
        records.take(vec![kernel(8, 200), kernel(8, 300), kernel(9, 900)]);
        let found = records.of(&replay(5), NONE);
        assert!(!records.are_sure(&replay(5), &found), "200 and 900");
        let whole: Vec<(Key, &Kernel)> = found.iter().copied().take(1).collect();
        assert!(records.are_sure(&replay(5), &whole));
        let alone = Sought {
            graph: None,
            ..replay(0)
        };
        assert!(records.are_sure(&alone, &found));
    }

    #[test]
    fn what_lies_across_an_event_is_not_within() {
        let mut records = Records::default();
        let across = SLACK_NS + 11;
        records.take(vec![
            kernel(1, -across),
            kernel(1, 1000 + across),
            kernel(1, 500),
        ]);
        assert_eq!(records.of(&replay(5), NONE).len(), 1);
    }

    #[test]
    fn old_records_are_given_up_and_counted() {
        let mut records = Records::default();
        assert_eq!(records.take(vec![kernel(1, 0), kernel(1, 5)]), 0);
        assert_eq!(records.take(vec![kernel(1, OLD_NS + 3)]), 1);
        let many = (0..).take(MAX_RECORDS).map(|at| kernel(1, OLD_NS + at));
        assert_eq!(records.take(many.collect()), 2);
    }
}
