//! The records of a device that belong to no launch yet, and the rules that match them with launches.

use super::bracket::Search;
use super::names::Names;
use crate::mspti::{Kernel, Key};
use crate::runtime::Bounds;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of records that are kept.
const MAX_RECORDS: usize = 1 << 17;
/// A record older than this belongs to no launch that is recorded. Its own times do not show its age, because MSPTI's clock may be set.
const OLD_NS: u64 = 5_000_000_000;
/// Times of one device agree within this: a tick at either end, and the rounding of ms in single precision.
const SLACK_NS: i64 = 200;
/// Maximum number of graphs whose kernels are remembered.
const MAX_GRAPHS: usize = 4096;
/// After this many replays in a row without any of its kernels, the kernels are another graph's.
const MAX_IN_VAIN: u32 = 2;

/// The parts of a record that differ from the other records of a replay.
type Id = (bool, u64);

/// The records.
#[derive(Debug, Default)]
pub(super) struct Records {
    by_start: BTreeMap<Key, Kernel>,
    /// Arrival of each record, the oldest first. Records that were taken out remain here.
    arrived: VecDeque<(u64, Key)>,
    taken: u64,
    /// Streams that something was launched into. No graph owns these.
    launched: BTreeSet<u32>,
    /// Their names for kernels that are launched by themselves.
    names: Names,
    graphs: BTreeMap<usize, Lesson>,
}

/// Knowledge about a graph.
#[derive(Debug)]
struct Lesson {
    /// The records of its last complete replay.
    ids: BTreeSet<Id>,
    /// True once two replays in a row had the same: then each replay has these.
    is_known: bool,
    /// Number of replays in a row without any of them.
    in_vain: u32,
}

/// Returns true if these records, sorted by start, can belong to one replay: a stream runs what was captured in the order of the capture. Otherwise some
/// belong to the replay before or after it.
pub(super) fn are_in_order<'a>(mut kernels: impl Iterator<Item = &'a Kernel>) -> bool {
    let mut last: BTreeMap<u32, Id> = BTreeMap::new();
    kernels.all(|kernel| {
        let is_numbered = kernel.correlation != 0;
        let before = is_numbered.then(|| last.insert(kernel.stream, kernel.id()));
        // A collective and a kernel may come from one call.
        before.flatten().is_none_or(|(was_collective, before)| {
            before < kernel.correlation
                || before == kernel.correlation && was_collective != kernel.is_collective()
        })
    })
}

impl Records {
    /// Takes new records. Returns how many old records of kernels were given up.
    pub(super) fn take(&mut self, kernels: Vec<Kernel>, now_ns: u64) -> u64 {
        for mut kernel in kernels {
            self.taken += 1;
            kernel.number = self.taken;
            self.arrived.push_back((now_ns, kernel.key()));
            self.by_start.insert(kernel.key(), kernel);
        }
        let mut gone = 0;
        while let Some((arrived_ns, key)) = self.arrived.front().copied()
            && (self.by_start.len() > MAX_RECORDS || now_ns.saturating_sub(arrived_ns) > OLD_NS)
        {
            self.arrived.pop_front();
            // A collective that was launched by itself keeps the times of its pair.
            let is_kernel = |gone: Kernel| !gone.is_collective();
            gone += u64::from(self.by_start.remove(&key).is_some_and(is_kernel));
        }
        gone
    }

    /// Notes that something was launched into a stream.
    pub(super) fn launched(&mut self, stream: u32) {
        self.launched.insert(stream);
    }

    /// Returns true if these certainly belong to one launch. Kernels of a graph are known, or their correlations follow one another.
    pub(super) fn are_sure<'a>(
        &self,
        search: &Search,
        kernels: impl Iterator<Item = &'a Kernel> + Clone,
    ) -> bool {
        if self.are_others(search, kernels.clone())
            || search.graph.is_some() && !are_in_order(kernels.clone())
        {
            return false;
        }
        if self.is_known(search) {
            return true;
        }
        let ids = kernels.map(|kernel| kernel.correlation);
        let first = ids.clone().min().unwrap_or(0);
        let span = ids.max().unwrap_or(0) - first;
        search.expected.is_some_and(|most| span < most as u64)
    }

    /// Returns true if one of these certainly is the record of another kernel, by its name.
    pub(super) fn are_others<'a>(
        &self,
        search: &Search,
        mut kernels: impl Iterator<Item = &'a Kernel>,
    ) -> bool {
        let name = search.name.as_deref();
        name.is_some_and(|name| kernels.any(|one| self.names.contradict(name, &one.name)))
    }

    /// Learns the name in the record of a launch.
    pub(super) fn learn_name(&mut self, search: &Search, kernel: &Kernel) {
        if let Some(name) = &search.name {
            self.names.learn(name, &kernel.name);
        }
    }

    /// Returns how many records a launch has, if that is known.
    pub(super) fn expected(&self, search: &Search) -> Option<usize> {
        let known = || Some(self.known(search.graph?)?.len());
        search.expected.or_else(known)
    }

    /// Returns true if more records were found than there can be.
    pub(super) fn is_too_much(&self, search: &Search, found: usize) -> bool {
        self.expected(search).is_some_and(|most| found > most)
    }

    /// Compares all records of a replay with the ones of the replay before. Returns true if they are the same, so that the graph's records are now known. Records
    /// that were not captured, or belong to another graph, differ each time.
    pub(super) fn learn(&mut self, graph: usize, kernels: &[Kernel]) -> bool {
        let ids: BTreeSet<Id> = kernels.iter().map(Kernel::id).collect();
        let before = self.graphs.get(&graph);
        let may_learn = before.map_or(!self.is_full(), |before| !before.is_known);
        if !may_learn || ids.is_empty() || ids.len() < kernels.len() {
            return false;
        }
        let lesson = Lesson {
            is_known: before.is_some_and(|before| before.ids == ids),
            ids,
            in_vain: 0,
        };
        let is_known = lesson.is_known;
        self.graphs.insert(graph, lesson);
        is_known
    }

    /// Returns the other graphs that are known to have some of these records. A record belongs to one graph.
    pub(super) fn contested(&self, graph: usize, kernels: &[Kernel]) -> Vec<usize> {
        let has_one = |ids: &BTreeSet<Id>| kernels.iter().any(|one| ids.contains(&one.id()));
        let others = self.graphs.keys().copied().filter(|other| *other != graph);
        let contested = others.filter(|other| self.known(*other).is_some_and(has_one));
        contested.collect()
    }

    /// Returns the records of each replay of a graph, once they are known.
    fn known(&self, graph: usize) -> Option<&BTreeSet<Id>> {
        let lesson = self.graphs.get(&graph).filter(|one| one.is_known);
        lesson.map(|one| &one.ids)
    }

    /// Returns true if it is known which records a launch has.
    pub(super) fn is_known(&self, search: &Search) -> bool {
        search.graph.is_none_or(|graph| self.known(graph).is_some())
    }

    /// Returns true if something is remembered about a graph.
    pub(super) fn remembers(&self, graph: usize) -> bool {
        self.graphs.contains_key(&graph)
    }

    /// Returns true if no more graphs can be remembered.
    pub(super) fn is_full(&self) -> bool {
        self.graphs.len() >= MAX_GRAPHS
    }

    /// Notes if a replay had all records that are known of its graph, or none of them. Returns true if these no longer count as known.
    pub(super) fn note_replay(&mut self, graph: usize, had_all: bool) -> bool {
        let known = self.graphs.get_mut(&graph).filter(|one| one.is_known);
        let is_doubtful = known.is_some_and(|lesson| {
            lesson.in_vain = if had_all { 0 } else { lesson.in_vain + 1 };
            lesson.in_vain >= MAX_IN_VAIN
        });
        if is_doubtful {
            self.forget(graph);
        }
        is_doubtful
    }

    /// Forgets a graph that is gone, or whose kernels were wrong.
    pub(super) fn forget(&mut self, graph: usize) {
        self.graphs.remove(&graph);
    }

    /// Returns true if a record may belong to a launch.
    fn may_be(&self, kernel: &Kernel, search: &Search) -> bool {
        if kernel.is_collective() && !search.has_collectives {
            return false;
        }
        let known = search.graph.and_then(|graph| self.known(graph));
        let is_launched = || self.launched.contains(&kernel.stream);
        match known {
            Some(known) => known.contains(&kernel.id()),
            None => kernel.stream == search.stream || search.graph.is_some() && !is_launched(),
        }
    }

    /// Returns the records that may belong to a launch with such an offset, sorted by start.
    pub(super) fn of(&self, search: &Search, offset: Bounds) -> Vec<&Kernel> {
        let offset = offset.wider(SLACK_NS);
        let near = self.within(search, offset);
        near.filter(|kernel| search.offset(kernel).and(offset).is_possible())
            .collect()
    }

    /// Returns the records that begin within this distance of a launch if MSPTI's clock is right, sorted by start.
    pub(super) fn near(&self, search: &Search, distance_ns: i64) -> Vec<&Kernel> {
        let prior = Bounds::new(search.prior_ns, search.prior_ns);
        self.within(search, prior.wider(distance_ns)).collect()
    }

    /// Returns the records that may belong to a launch and begin between its events by such an offset, sorted by start.
    fn within(&self, search: &Search, offset: Bounds) -> impl Iterator<Item = &Kernel> {
        let first = search.start_ns.saturating_add(offset.low_ns);
        let last = search.end_ns.saturating_add(offset.high_ns).max(first);
        let near = self.by_start.range((first, 0)..=(last, u64::MAX));
        near.map(|(_, kernel)| kernel)
            .filter(|kernel| self.may_be(kernel, search))
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
            number: 0,
            name: "k".into(),
            comm: None,
        }
    }

    fn replay(graph: usize) -> Search {
        Search {
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

    /// Makes a replay of a graph that has collectives.
    fn mixed(graph: usize) -> Search {
        Search {
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

    /// Teaches that graph 5 has these, by two replays.
    fn teach(records: &mut Records, kernels: &[Kernel]) {
        assert!(!records.learn(5, kernels) && records.learn(5, kernels));
    }

    fn of(stream: u32, start_ns: i64, correlation: u64) -> Kernel {
        Kernel {
            correlation,
            ..kernel(stream, start_ns)
        }
    }

    const NONE: Bounds = Bounds::new(0, 0);

    fn streams(records: &Records, search: &Search) -> Vec<u32> {
        let found = records.of(search, NONE).into_iter();
        found.map(|kernel| kernel.stream).collect()
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
        let alone = Search {
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
        let kernels = || found.iter().copied();
        assert!(!records.are_sure(&replay(5), kernels()), "200 and 900");
        assert!(records.are_sure(&replay(5), kernels().take(1)));
        let alone = Search {
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
        let alone = Search {
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
        let whole = |records: &Records| records.expected(&mixed(5)) == Some(2);
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
        records.note_replay(5, false);
        assert!(records.note_replay(5, false) && !records.remembers(5));
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
    fn a_kernel_across_an_event_is_not_within() {
        let mut records = Records::default();
        let across = SLACK_NS + 11;
        let starts = [-across, 1000 + across, 500];
        records.take(starts.map(|start| kernel(1, start)).to_vec(), 0);
        assert_eq!(records.of(&replay(5), NONE).len(), 1);
    }

    #[test]
    fn doubtful_records_are_not_learned_and_wrong_ones_are_forgotten() {
        let mut records = Records::default();
        assert!(!records.are_sure(&replay(5), [kernel(8, 200), kernel(9, 900)].iter()));
        teach(&mut records, &[kernel(8, 200), kernel(8, 201)]);
        assert!(!records.note_replay(5, false), "its records may be lost");
        records.note_replay(5, true);
        assert!(!records.note_replay(5, false), "it was right in between");
        assert!(records.note_replay(5, false));
        teach(&mut records, &[kernel(8, 500), kernel(8, 501)]);
        assert!(
            !records.note_replay(6, false),
            "of that one nothing is known"
        );
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
