//! The records of a device that belong to no launch yet, and whose they are.

use super::names::Names;
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
const MAX_GRAPHS: usize = 4096;
/// A graph has so many replays in a row without one of the kernels that it was taken to have: they are another's.
const MAX_IN_VAIN: u32 = 2;

/// A record's place: its start, and a number for those that start together.
pub(super) type Key = (i64, u64);
/// What tells a record from the others of a replay.
type Id = (bool, u64);

/// The records.
#[derive(Debug, Default)]
pub(super) struct Records {
    by_start: BTreeMap<Key, Kernel>,
    /// When each came, the oldest first; also of those that were taken out.
    arrived: VecDeque<(u64, Key)>,
    taken: u64,
    /// Streams that something was launched into: no graph's own.
    launched: BTreeSet<u32>,
    /// What they call the kernels that are launched by themselves.
    names: Names,
    /// The records of a graph's replays, once they are known.
    own: BTreeMap<usize, BTreeSet<Id>>,
    /// What the last replay of a graph had that was whole, while it is not known.
    last: BTreeMap<usize, BTreeSet<Id>>,
    /// Replays in a row of a graph whose kernels are known, and none of which ran.
    in_vain: BTreeMap<usize, u32>,
}

/// Whether records, by their start, can be those of one replay: a stream runs what was captured in the order of the capture. Else some are of the
/// replay before or behind it.
pub(super) fn are_in_order<'a>(mut kernels: impl Iterator<Item = &'a Kernel>) -> bool {
    let mut last: BTreeMap<u32, Id> = BTreeMap::new();
    kernels.all(|kernel| {
        let is_numbered = kernel.correlation != 0;
        let before = is_numbered.then(|| last.insert(kernel.stream, kernel.id()));
        // A collective and a kernel may come of one call.
        before.flatten().is_none_or(|(was_collective, before)| {
            before < kernel.correlation
                || before == kernel.correlation && was_collective != kernel.is_collective()
        })
    })
}

impl Records {
    /// Takes records over that came just now; how many old ones of kernels are given up.
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
            // A collective that was launched by itself has the times of its pair.
            let is_kernel = |gone: Kernel| !gone.is_collective();
            gone += u64::from(self.by_start.remove(&key).is_some_and(is_kernel));
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
        kernels: impl Iterator<Item = &'a Kernel> + Clone,
    ) -> bool {
        if self.are_others(sought, kernels.clone())
            || sought.graph.is_some() && !are_in_order(kernels.clone())
        {
            return false;
        }
        if self.is_known(sought) {
            return true;
        }
        let ids: Vec<u64> = kernels.map(|kernel| kernel.correlation).collect();
        let first = ids.iter().min().copied().unwrap_or(0);
        let last = ids.iter().max().copied().unwrap_or(0);
        sought
            .expected
            .is_some_and(|expected| last - first < expected as u64)
    }

    /// Whether one of these is surely the record of another kernel, by its name.
    pub(super) fn are_others<'a>(
        &self,
        sought: &Sought,
        mut kernels: impl Iterator<Item = &'a Kernel>,
    ) -> bool {
        let name = sought.name.as_deref();
        name.is_some_and(|name| kernels.any(|one| self.names.contradict(name, &one.name)))
    }

    /// A launch's record is found.
    pub(super) fn learn_name(&mut self, sought: &Sought, kernel: &Kernel) {
        if let Some(name) = &sought.name {
            self.names.learn(name, &kernel.name);
        }
    }

    /// How many records a launch has, if that is known.
    pub(super) fn expected(&self, sought: &Sought) -> Option<usize> {
        let known = || Some(self.own.get(&sought.graph?)?.len());
        sought.expected.or_else(known)
    }

    /// Whether as many records as were found are all there are.
    pub(super) fn is_whole(&self, sought: &Sought, found: usize) -> bool {
        self.expected(sought) == Some(found)
    }

    /// Whether more records were found than there can be.
    pub(super) fn is_too_much(&self, sought: &Sought, found: usize) -> bool {
        self.expected(sought).is_some_and(|most| found > most)
    }

    /// These are all records of a replay. The same as with the one before: whether it is now known what the graph has, and was not before. What was not
    /// captured, or is another graph's, is not the same each time.
    pub(super) fn learn(&mut self, graph: usize, kernels: &[Kernel]) -> bool {
        let ids: BTreeSet<Id> = kernels.iter().map(Kernel::id).collect();
        if !self.may_learn(graph) || ids.is_empty() || ids.len() < kernels.len() {
            return false;
        }
        let before = self.last.insert(graph, ids.clone());
        let is_known = before.is_some_and(|before| before == ids);
        if is_known {
            self.last.remove(&graph);
            self.own.insert(graph, ids);
        }
        is_known
    }

    /// The graphs of which some of these records are taken to be, but for this one. A record is one graph's.
    pub(super) fn contested(&self, graph: usize, kernels: &[Kernel]) -> Vec<usize> {
        let has_one = |own: &BTreeSet<Id>| kernels.iter().any(|kernel| own.contains(&kernel.id()));
        let others = self
            .own
            .iter()
            .filter(|(other, own)| **other != graph && has_one(own));
        others.map(|(other, _)| *other).collect()
    }

    /// Whether it is known which records a launch has.
    pub(super) fn is_known(&self, sought: &Sought) -> bool {
        sought
            .graph
            .is_none_or(|graph| self.own.contains_key(&graph))
    }

    /// Whether something is remembered of a graph.
    pub(super) fn remembers(&self, graph: usize) -> bool {
        self.own.contains_key(&graph) || self.last.contains_key(&graph)
    }

    /// Whether no more graphs can be remembered.
    pub(super) fn is_full(&self) -> bool {
        self.own.len() + self.last.len() >= MAX_GRAPHS
    }

    fn may_learn(&self, graph: usize) -> bool {
        let has_room = !self.is_full() || self.last.contains_key(&graph);
        has_room && !self.own.contains_key(&graph)
    }

    /// A replay has had all that its graph is known to have.
    pub(super) fn believe(&mut self, sought: &Sought) {
        sought.graph.map(|graph| self.in_vain.remove(&graph));
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
        self.last.remove(&graph);
        self.in_vain.remove(&graph);
    }

    /// Whether a record may be one of a launch's.
    fn may_be(&self, kernel: &Kernel, sought: &Sought) -> bool {
        if kernel.is_collective() && !sought.has_collectives {
            return false;
        }
        let own = sought.graph.and_then(|graph| self.own.get(&graph));
        match (sought.graph, own) {
            (None, _) => kernel.stream == sought.stream,
            (Some(_), Some(own)) => own.contains(&kernel.id()),
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
    use crate::graphs::RecordCount;

    fn kernel(stream: u32, start_ns: i64) -> Kernel {
        Kernel {
            device: 0,
            stream,
            start_ns,
            end_ns: start_ns + 10,
            correlation: start_ns.unsigned_abs(),
            name: "k".into(),
            comm: None,
        }
    }

    fn replay(graph: usize) -> Sought {
        Sought {
            start_ns: 0,
            end_ns: 1000,
            stream: 1,
            name: None,
            graph: Some(graph),
            expected: Some(2),
            at_least: RecordCount::default(),
            has_collectives: false,
            prior_ns: 0,
        }
    }

    /// A replay of a graph that has collectives.
    fn mixed(graph: usize) -> Sought {
        Sought {
            expected: None,
            has_collectives: true,
            ..replay(graph)
        }
    }

    fn collective(stream: u32, start_ns: i64) -> Kernel {
        Kernel {
            comm: Some("world".into()),
            ..kernel(stream, start_ns)
        }
    }

    /// Two replays of graph 5 have these.
    fn teach(records: &mut Records, kernels: &[Kernel]) {
        assert!(!records.learn(5, kernels) && records.learn(5, kernels));
    }

    fn of(stream: u32, start_ns: i64, correlation: u64) -> Kernel {
        Kernel {
            correlation,
            ..kernel(stream, start_ns)
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
        teach(&mut records, &[kernel(9, 300)]);
        assert!(!records.learn(5, &[kernel(8, 200)]), "it is known");
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
    fn records_of_two_replays_are_not_one() {
        let shifted = [of(8, 10, 2), of(8, 20, 3), of(8, 30, 1)];
        let forked = [of(8, 10, 1), of(9, 20, 3), of(8, 30, 2), of(9, 40, 4)];
        assert!(!are_in_order(shifted.iter()) && are_in_order(forked.iter()));
        assert!(!are_in_order([of(8, 10, 1), of(8, 20, 1)].iter()));
        let unnumbered = [of(8, 10, 0), of(8, 20, 5), of(8, 30, 0)];
        assert!(are_in_order(unnumbered.iter()));
        let of_one_call = [of(8, 10, 4), collective(8, 4)];
        assert!(are_in_order(of_one_call.iter()));
        let before = [collective(8, 20), of(8, 30, 7)];
        assert!(!are_in_order(before.iter()), "the one of the replay before");
        let mut records = Records::default();
        teach(&mut records, &[of(8, 20, 1), of(8, 30, 2)]);
        let later = [of(8, 120, 2), of(8, 130, 1)];
        assert!(!records.are_sure(&replay(5), later.iter()));
    }

    #[test]
    fn a_collective_is_a_replays_whose_graph_has_one() {
        let mut records = Records::default();
        records.launched(1);
        let all = [kernel(8, 100), collective(8, 200), collective(1, 300)];
        records.take(all.to_vec(), 0);
        assert_eq!(streams(&records, &mixed(5)), [8, 8, 1]);
        assert_eq!(streams(&records, &replay(5)), [8]);
        let alone = Sought {
            graph: None,
            ..replay(0)
        };
        assert_eq!(streams(&records, &alone), [0u32; 0]);
        assert_eq!(records.take(Vec::new(), OLD_NS + 1), 1, "the kernel alone");
    }

    #[test]
    fn two_replays_that_agree_teach_what_a_graph_has() {
        let mut records = Records::default();
        let both = [of(8, 100, 7), collective(8, 200)];
        let whole = |records: &Records| records.is_whole(&mixed(5), 2);
        assert!(!records.learn(5, &both), "one");
        let another = [of(8, 100, 7), of(9, 150, 31), collective(8, 200)];
        assert!(!records.learn(5, &another), "one more than before");
        assert!(!records.learn(5, &both) && !whole(&records));
        assert!(!records.are_sure(&mixed(5), both.iter()));
        assert!(records.learn(5, &both) && whole(&records));
        assert!(records.is_too_much(&mixed(5), 3));
        assert!(records.are_sure(&mixed(5), both.iter()));
        assert!(!whole(&Records::default()) && !records.learn(5, &both));
        records.take([&another[..], &[of(8, 300, 8)]].concat(), 0);
        assert_eq!(streams(&records, &mixed(5)), [8, 8], "those alone");
        records.doubt(&mixed(5));
        assert!(records.doubt(&mixed(5)) && !records.remembers(5));
    }

    #[test]
    fn a_record_is_one_graphs() {
        let mut records = Records::default();
        teach(&mut records, &[of(8, 20, 2), of(9, 30, 3)]);
        let others = [of(9, 40, 3), of(9, 50, 4)];
        assert_eq!(records.contested(6, &others), [5]);
        assert_eq!(records.contested(5, &others), [0usize; 0]);
        assert_eq!(records.contested(6, &others[1..]), [0usize; 0]);
    }

    #[test]
    fn records_that_cannot_be_told_apart_teach_nothing() {
        let mut records = Records::default();
        for alike in [&[][..], &[of(8, 100, 0), of(8, 200, 0)]] {
            for _ in 0..3 {
                assert!(!records.learn(5, alike) && !records.remembers(5));
            }
        }
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
        assert!(!records.are_sure(&replay(5), [kernel(8, 200), kernel(9, 900)].iter()));
        teach(&mut records, &[kernel(8, 200), kernel(8, 201)]);
        assert!(!records.doubt(&replay(5)), "its records may be lost");
        records.believe(&replay(5));
        assert!(!records.doubt(&replay(5)), "it was right in between");
        assert!(records.doubt(&replay(5)));
        teach(&mut records, &[kernel(8, 500), kernel(8, 501)]);
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
