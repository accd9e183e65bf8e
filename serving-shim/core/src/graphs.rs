//! Which kernels a graph has: what was launched while it was captured.

use crate::mspti::Kernel;
use crate::runtime::Graph;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Most graphs that are remembered; a serving engine has one for each batch size and layer at most.
const MAX_GRAPHS: usize = 4096;
/// Most different kernels of a graph that are told apart.
const MAX_NAMES: usize = 64;

/// The kernels of a graph: name and how often, in the order in which they first came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kernels {
    names: Vec<(String, u64)>,
    others: u64,
    /// Some that it has are not here.
    lacks: bool,
    /// It has other work than kernels that were launched one by one.
    is_mixed: bool,
    /// Those among all of these that are kernels.
    kernels: u64,
    has_collectives: bool,
    /// How many records each replay has, once that is known: in the upper half those of kernels, in the lower one those of collectives.
    known_records: Known,
}

/// A number that a copy does not have: its graph is captured further.
#[derive(Debug, Default)]
struct Known(AtomicU64);

impl Clone for Known {
    fn clone(&self) -> Known {
        Known::default()
    }
}

/// What is captured into a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Kernel,
    /// It may run any number of kernels.
    Collective,
    /// It may run any number of kernels.
    Other,
}

/// How many records there are of what a launch runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordCount {
    pub(crate) kernels: u32,
    pub(crate) collectives: u32,
}

impl RecordCount {
    /// Counts these.
    pub(crate) fn of<'a>(records: impl Iterator<Item = &'a Kernel>) -> RecordCount {
        records.fold(RecordCount::default(), |count, one| match one.comm {
            Some(_) => RecordCount {
                collectives: count.collectives + 1,
                ..count
            },
            None => RecordCount {
                kernels: count.kernels + 1,
                ..count
            },
        })
    }

    pub(crate) fn sum(self) -> u64 {
        u64::from(self.kernels) + u64::from(self.collectives)
    }

    /// How many of these are not among those `found`, kind by kind.
    pub(crate) fn missing(self, found: RecordCount) -> u64 {
        let missing = RecordCount {
            kernels: self.kernels.saturating_sub(found.kernels),
            collectives: self.collectives.saturating_sub(found.collectives),
        };
        missing.sum()
    }
}

/// The kernels of each graph.
#[derive(Debug, Default)]
pub(crate) struct Graphs(Mutex<BTreeMap<usize, Arc<Kernels>>>);

impl Kernels {
    fn add(&mut self, name: &str, work: Work) {
        match work {
            Work::Kernel => self.kernels += 1,
            Work::Collective => self.has_collectives = true,
            Work::Other => {}
        }
        self.is_mixed |= work != Work::Kernel;
        let is_full = self.names.len() >= MAX_NAMES;
        match self.names.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None if is_full => self.others += 1,
            None => self.names.push((name.to_owned(), 1)),
        }
    }

    /// How many kernels one replay runs, where each of them was launched by itself.
    pub(crate) fn exact_count(&self) -> Option<u64> {
        (!self.is_mixed).then(|| self.count())
    }

    /// How many records one replay has: as many as is known, or at least those of the kernels that were launched one by one.
    pub(crate) fn records(&self) -> RecordCount {
        let half = |half: u64| u32::try_from(half).unwrap_or(u32::MAX);
        match self.known_records.0.load(Ordering::Relaxed) {
            0 => RecordCount {
                kernels: half(self.kernels),
                collectives: 0,
            },
            both => RecordCount {
                kernels: half(both >> 32),
                collectives: half(both & u64::from(u32::MAX)),
            },
        }
    }

    /// It is known how many records each replay has, or no longer.
    pub(crate) fn know_records(&self, count: Option<RecordCount>) {
        let both =
            |count: RecordCount| u64::from(count.kernels) << 32 | u64::from(count.collectives);
        self.known_records
            .0
            .store(count.map_or(0, both), Ordering::Relaxed);
    }

    /// Whether a replay may have records of collectives.
    pub(crate) fn has_collectives(&self) -> bool {
        self.has_collectives
    }

    /// How many kernels one replay runs.
    pub(crate) fn count(&self) -> u64 {
        self.names.iter().map(|(_, count)| count).sum::<u64>() + self.others
    }

    /// `matmul ×32`, for each kernel.
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
    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<usize, Arc<Kernels>>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Does something while nobody else can look.
    #[cfg(test)]
    pub(crate) fn hold(&self, act: impl FnOnce()) {
        self.with(|_| act());
    }

    /// Work was captured into a graph.
    pub(crate) fn add(&self, graph: Graph, name: &str, work: Work) {
        self.with(|graphs| {
            if graphs.len() < MAX_GRAPHS || graphs.contains_key(&graph.0) {
                Arc::make_mut(graphs.entry(graph.0).or_default()).add(name, work);
            }
        });
    }

    /// Kernels were captured into a graph before anybody knew of it.
    pub(crate) fn spoil(&self, graph: Graph) {
        self.with(|graphs| {
            if graphs.len() < MAX_GRAPHS {
                Arc::make_mut(graphs.entry(graph.0).or_default()).lacks = true;
            }
        });
    }

    /// The graph got the name by which it is replayed.
    pub(crate) fn rename(&self, from: Graph, to: Graph) {
        if from != to {
            self.with(|graphs| {
                if let Some(kernels) = graphs.remove(&from.0) {
                    graphs.insert(to.0, kernels);
                }
            });
        }
    }

    /// The graph is gone; its name may come again.
    pub(crate) fn forget(&self, graph: Graph) {
        self.with(|graphs| graphs.remove(&graph.0));
    }

    /// The kernels of a graph, if its whole capture was seen.
    pub(crate) fn kernels(&self, graph: Graph) -> Option<Arc<Kernels>> {
        let whole = |kernels: &Arc<Kernels>| !kernels.lacks;
        self.with(|graphs| graphs.get(&graph.0).cloned().filter(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_counted_under_the_final_name() {
        let graphs = Graphs::default();
        for name in ["matmul", "add", "matmul"] {
            graphs.add(Graph(0), name, Work::Kernel);
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
            graphs.add(Graph(1), name, Work::Kernel);
        }
        graphs.add(Graph(1), "HcclAllReduce", Work::Collective);
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
        graphs.add(Graph(1), "matmul", Work::Kernel);
        graphs.rename(Graph(1), Graph(2));
        assert!(graphs.kernels(Graph(2)).is_none());
        graphs.forget(Graph(2));
        graphs.add(Graph(2), "matmul", Work::Kernel);
        assert!(graphs.kernels(Graph(2)).is_some());
    }

    #[test]
    fn many_kernels_are_counted_together() {
        let mut kernels = Kernels::default();
        (0..100).for_each(|index| kernels.add(&format!("k{index}"), Work::Kernel));
        assert_eq!(
            (kernels.count(), kernels.texts().len()),
            (100, MAX_NAMES + 1)
        );
    }
}
