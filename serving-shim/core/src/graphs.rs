//! The kernels of graphs: what was launched while each of them was captured.

use crate::description::Kind;
use crate::lock::lock;
use crate::mspti::Kernel;
use crate::runtime::Graph;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Maximum number of graphs that are remembered; a serving engine has at most one for each batch size and layer.
const MAX_GRAPHS: usize = 4096;
/// Maximum number of distinct kernels of a graph. All further ones share one entry.
const MAX_NAMES: usize = 64;

/// The kernels of a graph: name and number of launches, in the order of their first launch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kernels {
    names: Vec<(String, u64)>,
    others: u64,
    /// True if launches are missing here, because they were not seen.
    lacks: bool,
    /// True if it has other work than kernels that were launched one by one.
    is_mixed: bool,
    /// Number of kernels that were launched one by one.
    kernels: u64,
    /// True if a replay may have records of collectives.
    pub(crate) has_collectives: bool,
    /// Number of records of each replay, once it is known: the upper half counts kernels, the lower half collectives.
    known_records: Known,
}

/// A number that is not copied: the graph of a copy is captured further.
#[derive(Debug, Default)]
struct Known(AtomicU64);

impl Clone for Known {
    fn clone(&self) -> Known {
        Known::default()
    }
}

/// Number of MSPTI records of what a launch runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordCount {
    pub(crate) kernels: u32,
    pub(crate) collectives: u32,
}

impl RecordCount {
    /// The record of a kernel that was launched by itself.
    pub(crate) const ONE_KERNEL: RecordCount = RecordCount::new(1, 0);

    pub(crate) const fn new(kernels: u32, collectives: u32) -> RecordCount {
        RecordCount {
            kernels,
            collectives,
        }
    }

    /// Counts records.
    pub(crate) fn of<'a>(records: impl Iterator<Item = &'a Kernel>) -> RecordCount {
        let mut count = RecordCount::default();
        for record in records {
            match record.comm {
                Some(_) => count.collectives += 1,
                None => count.kernels += 1,
            }
        }
        count
    }

    pub(crate) fn sum(self) -> u64 {
        u64::from(self.kernels) + u64::from(self.collectives)
    }

    /// Returns how many are missing if these were `found`, kind by kind.
    pub(crate) fn missing(self, found: RecordCount) -> u64 {
        let kernels = self.kernels.saturating_sub(found.kernels);
        u64::from(kernels) + u64::from(self.collectives.saturating_sub(found.collectives))
    }
}

/// The kernels of each graph.
#[derive(Debug, Default)]
pub(crate) struct Graphs(Mutex<BTreeMap<usize, Arc<Kernels>>>);

impl Kernels {
    fn add(&mut self, name: &str, kind: Kind) {
        match kind {
            Kind::Kernel => self.kernels += 1,
            Kind::Collective => self.has_collectives = true,
            _ => {}
        }
        self.is_mixed |= kind != Kind::Kernel; // anything else may run any number of kernels
        let is_full = self.names.len() >= MAX_NAMES;
        match self.names.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None if is_full => self.others += 1,
            None => self.names.push((name.to_owned(), 1)),
        }
    }

    /// Returns the number of kernels that one replay runs, if each of them was launched by itself.
    pub(crate) fn exact_count(&self) -> Option<u64> {
        (!self.is_mixed).then(|| self.count())
    }

    /// Returns the number of records of one replay: the known number, or at least one for each kernel that was launched by itself.
    pub(crate) fn records(&self) -> RecordCount {
        let half = |half: u64| u32::try_from(half).unwrap_or(u32::MAX);
        match self.known_records.0.load(Ordering::Relaxed) {
            0 => RecordCount::new(half(self.kernels), 0),
            both => RecordCount::new(half(both >> 32), half(both & u64::from(u32::MAX))),
        }
    }

    /// Sets how many records each replay has; `None` if that is no longer known.
    pub(crate) fn know_records(&self, count: Option<RecordCount>) {
        let count = count.unwrap_or_default();
        let both = u64::from(count.kernels) << 32 | u64::from(count.collectives);
        self.known_records.0.store(both, Ordering::Relaxed);
    }

    /// Returns how many launches were captured: one replay runs at least as many kernels.
    pub(crate) fn count(&self) -> u64 {
        self.names.iter().map(|(_, count)| count).sum::<u64>() + self.others
    }

    /// Returns a text such as `matmul ×32` for each kernel.
    pub(crate) fn texts(&self) -> Vec<String> {
        let text = |(name, count): &(String, u64)| match count {
            1 => name.clone(),
            count => format!("{name} ×{count}"),
        };
        let others = (self.others > 0).then(|| format!("{} others", self.others));
        self.names.iter().map(text).chain(others).collect()
    }
}

impl Graphs {
    /// Changes a graph. If it is new and there are too many, nothing happens.
    fn change(&self, graph: Graph, change: impl FnOnce(&mut Kernels)) {
        let mut graphs = lock(&self.0);
        if graphs.len() < MAX_GRAPHS || graphs.contains_key(&graph.0) {
            change(Arc::make_mut(graphs.entry(graph.0).or_default()));
        }
    }

    /// Does something while no other thread can look.
    #[cfg(test)]
    pub(crate) fn hold(&self, act: impl FnOnce()) {
        let _graphs = lock(&self.0);
        act();
    }

    /// Adds a launch that was captured into a graph.
    pub(crate) fn add(&self, graph: Graph, name: &str, kind: Kind) {
        self.change(graph, |kernels| kernels.add(name, kind));
    }

    /// Marks a graph as incomplete: launches were captured into it before the capture was noticed.
    pub(crate) fn spoil(&self, graph: Graph) {
        self.change(graph, |kernels| kernels.lacks = true);
    }

    /// Gives a graph the name by which it is replayed.
    pub(crate) fn rename(&self, from: Graph, to: Graph) {
        let mut graphs = lock(&self.0);
        if let Some(kernels) = graphs.remove(&from.0) {
            graphs.insert(to.0, kernels);
        }
    }

    /// Forgets a graph that is gone; its name may be used again.
    pub(crate) fn forget(&self, graph: Graph) {
        lock(&self.0).remove(&graph.0);
    }

    /// Returns the kernels of a graph, if its whole capture was seen.
    pub(crate) fn kernels(&self, graph: Graph) -> Option<Arc<Kernels>> {
        let kernels = lock(&self.0).get(&graph.0).cloned();
        kernels.filter(|kernels| !kernels.lacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_counted_under_the_final_name() {
        let graphs = Graphs::default();
        for name in ["matmul", "add", "matmul"] {
            graphs.add(Graph(0), name, Kind::Kernel);
        }
        graphs.rename(Graph(0), Graph(9));
        let kernels = graphs.kernels(Graph(9)).unwrap();
        assert_eq!(
            (kernels.count(), kernels.texts()),
            (3, vec!["matmul ×2".to_owned(), "add".to_owned()])
        );
        graphs.forget(Graph(9));
        assert!(graphs.kernels(Graph(9)).is_none());
    }

    #[test]
    fn records_of_collectives_are_expected_once_it_is_known_how_many_there_are() {
        let graphs = Graphs::default();
        for name in ["matmul", "add"] {
            graphs.add(Graph(1), name, Kind::Kernel);
        }
        graphs.add(Graph(1), "HcclAllReduce", Kind::Collective);
        let graph = graphs.kernels(Graph(1)).unwrap();
        assert_eq!((graph.count(), graph.exact_count()), (3, None));
        let of = |kernels, collectives| RecordCount {
            kernels,
            collectives,
        };
        assert_eq!(graph.records(), of(2, 0));
        for known in [of(3, 1), of(0, 1), of(u32::MAX, 7)] {
            graph.know_records(Some(known));
            assert_eq!(graph.records(), known);
        }
        graph.know_records(None);
        assert_eq!(graph.records(), of(2, 0));
        assert_eq!(of(4, 2).missing(of(3, 5)), 1, "a collective is no kernel");
    }

    #[test]
    fn a_graph_that_lacks_kernels_has_no_list() {
        let graphs = Graphs::default();
        graphs.spoil(Graph(1));
        graphs.add(Graph(1), "matmul", Kind::Kernel);
        graphs.rename(Graph(1), Graph(2));
        assert!(graphs.kernels(Graph(2)).is_none());
        graphs.forget(Graph(2));
        graphs.add(Graph(2), "matmul", Kind::Kernel);
        assert!(graphs.kernels(Graph(2)).is_some());
    }

    #[test]
    fn many_kernels_are_counted_together() {
        let mut kernels = Kernels::default();
        (0..100).for_each(|index| kernels.add(&format!("k{index}"), Kind::Kernel));
        assert_eq!(
            (kernels.count(), kernels.texts().len()),
            (100, MAX_NAMES + 1)
        );
    }
}
