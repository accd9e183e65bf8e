//! The records of a device that belong to no launch yet, and whose they are.

use super::sought::{Offset, Sought};
use crate::mspti::Kernel;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most records that are kept.
const MAX_RECORDS: usize = 1 << 17;
/// A record that came so long ago belongs to no launch that is recorded. Its own times do not tell: MSPTI's clock may be set.
const OLD_NS: u64 = 5_000_000_000;
/// Times of one device agree within a tick at either end, and what single precision makes of ms.
const SLACK_NS: i64 = 200;
/// Graphs whose kernels are remembered.
pub(super) const MAX_GRAPHS: usize = 4096;
/// A graph has so many replays in a row without one of the kernels that it was taken to have: they are another's.
const MAX_IN_VAIN: u32 = 2;

/// A record's place: its start, and a number for those that start together.
pub(super) type Key = (i64, u64);

/// The records.
#[derive(Debug, Default)]
pub(super) struct Records {
    by_start: BTreeMap<Key, Kernel>,
    /// When each came, the oldest first; also of those that were taken out.
    arrived: VecDeque<(u64, Key)>,
    taken: u64,
    /// Streams that something was launched into: no graph's own.
    launched: BTreeSet<u32>,
    /// The correlations of a graph's kernels, once they are known.
    own: BTreeMap<usize, BTreeSet<u64>>,
    /// Replays in a row of a graph whose kernels are known, and none of which ran.
    in_vain: BTreeMap<usize, u32>,
}

impl Records {
    /// Takes records over that came just now; how many old ones are given up.
    pub(super) fn take(&mut self, kernels: Vec<Kernel>, now_ns: u64) -> u64 {
        for kernel in kernels {
            self.taken += 1;
            let key = (kernel.start_ns, self.taken);
            self.arrived.push_back((now_ns, key));
            self.by_start.insert(key, kernel);
        }
        let mut gone = 0;
        while let Some((arrived_ns, key)) = self.arrived.front().copied()
            && (self.by_start.len() > MAX_RECORDS || now_ns.saturating_sub(arrived_ns) > OLD_NS)
        {
            self.arrived.pop_front();
            gone += u64::from(self.by_start.remove(&key).is_some());
        }
        gone
    }

    /// Something was launched into a stream.
    pub(super) fn launched(&mut self, stream: u32) {
        self.launched.insert(stream);
    }

    /// Whether these are surely of one launch. Kernels of a graph are known, or were captured one after the other: their correlations follow one another.
    pub(super) fn are_sure<'a>(
        &self,
        sought: &Sought,
        kernels: impl Iterator<Item = &'a Kernel>,
    ) -> bool {
        let is_known = |graph| self.own.contains_key(&graph);
        if sought.graph.is_none_or(is_known) {
            return true;
        }
        let ids: Vec<u64> = kernels.map(|kernel| kernel.correlation).collect();
        let first = ids.iter().min().copied().unwrap_or(0);
        let last = ids.iter().max().copied().unwrap_or(0);
        sought
            .expected
            .is_some_and(|expected| last - first < expected as u64)
    }

    /// All kernels of a launch were found: these. Whether it is now known what its graph has, and was not before.
    pub(super) fn learn(&mut self, sought: &Sought, kernels: &[Kernel]) -> bool {
        let Some(graph) = sought.graph else {
            return false;
        };
        self.in_vain.remove(&graph);
        let is_known = self.own.contains_key(&graph);
        if is_known || self.own.len() >= MAX_GRAPHS || !self.are_sure(sought, kernels.iter()) {
            return false;
        }
        let ids = kernels.iter().map(|kernel| kernel.correlation);
        self.own.insert(graph, ids.collect());
        true
    }

    /// None of a launch's kernels were found; whether those of its graph are no longer taken for known.
    pub(super) fn doubt(&mut self, sought: &Sought) -> bool {
        let known = sought.graph.filter(|graph| self.own.contains_key(graph));
        let Some(graph) = known else {
            return false;
        };
        let in_vain = self.in_vain.entry(graph).or_insert(0);
        *in_vain += 1;
        let is_doubtful = *in_vain >= MAX_IN_VAIN;
        if is_doubtful {
            self.forget(graph);
        }
        is_doubtful
    }

    /// A graph is gone, or its kernels are not what was thought.
    pub(super) fn forget(&mut self, graph: usize) {
        self.own.remove(&graph);
        self.in_vain.remove(&graph);
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
        let kernels = [(2, 100), (8, 200), (9, 300), (1, 400)];
        let kernels = kernels.map(|(stream, start)| kernel(stream, start));
        records.take(kernels.to_vec(), 0);
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
        records.take(vec![kernel(8, 200), kernel(8, 300), kernel(9, 900)], 0);
        let found = records.of(&replay(5), NONE);
        let kernels = || found.iter().map(|(_, kernel)| *kernel);
        assert!(!records.are_sure(&replay(5), kernels()), "200 and 900");
        assert!(records.are_sure(&replay(5), kernels().take(1)));
        let alone = Sought {
            graph: None,
            ..replay(0)
        };
        assert!(records.are_sure(&alone, kernels()));
    }

    #[test]
    fn what_lies_across_an_event_is_not_within() {
        let mut records = Records::default();
        let across = SLACK_NS + 11;
        let starts = [-across, 1000 + across, 500];
        records.take(starts.map(|start| kernel(1, start)).to_vec(), 0);
        assert_eq!(records.of(&replay(5), NONE).len(), 1);
    }

    #[test]
    fn what_is_not_surely_of_a_graph_is_not_learnt_and_what_is_wrong_is_forgotten() {
        let mut records = Records::default();
        assert!(!records.learn(&replay(5), &[kernel(8, 200), kernel(9, 900)]));
        assert!(records.learn(&replay(5), &[kernel(8, 200), kernel(8, 201)]));
        assert!(!records.doubt(&replay(5)), "its records may be lost");
        assert!(!records.learn(&replay(5), &[kernel(8, 200), kernel(8, 201)]));
        assert!(!records.doubt(&replay(5)), "it was right in between");
        assert!(records.doubt(&replay(5)));
        assert!(records.learn(&replay(5), &[kernel(8, 500), kernel(8, 501)]));
        assert!(!records.doubt(&replay(6)), "of that one nothing is known");
    }

    #[test]
    fn old_records_are_given_up_and_counted() {
        let mut records = Records::default();
        assert_eq!(records.take(vec![kernel(1, 0), kernel(1, 5)], 0), 0);
        assert_eq!(records.take(vec![kernel(1, 9)], OLD_NS + 1), 2);
        let many = (0..).take(MAX_RECORDS).map(|at| kernel(1, at));
        assert_eq!(records.take(many.collect(), OLD_NS + 2), 1);
    }

    #[test]
    fn a_clock_that_is_set_makes_no_record_old() {
        const STEP_NS: i64 = -3_600_000_000_000;
        let mut records = Records::default();
        records.take(vec![kernel(1, 100)], 0);
        assert_eq!(records.take(vec![kernel(1, STEP_NS)], 1), 0);
        assert_eq!(records.take(vec![kernel(1, STEP_NS + 5)], 2), 0);
        assert_eq!(records.by_start.len(), 3);
    }
}
