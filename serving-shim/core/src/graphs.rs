//! Which kernels a graph has: what was launched while it was captured.

use crate::runtime::Graph;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Most graphs that are remembered; a serving engine has one for each batch size and layer at most.
const MAX_GRAPHS: usize = 4096;
/// Most different kernels of a graph that are told apart.
const MAX_NAMES: usize = 64;

/// The kernels of a graph: name and how often, in the order in which they first came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kernels {
    names: Vec<(String, u64)>,
    others: u64,
    /// Some that it has are not here.
    lacks: bool,
    /// It has other work than kernels that were launched one by one.
    is_mixed: bool,
}

/// The kernels of each graph.
#[derive(Debug, Default)]
pub(crate) struct Graphs(Mutex<BTreeMap<usize, Arc<Kernels>>>);

impl Kernels {
    fn add(&mut self, name: &str) {
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

    /// A kernel was captured into a graph.
    pub(crate) fn add(&self, graph: Graph, name: &str) {
        self.with(|graphs| {
            if graphs.len() < MAX_GRAPHS || graphs.contains_key(&graph.0) {
                Arc::make_mut(graphs.entry(graph.0).or_default()).add(name);
            }
        });
    }

    /// A graph has work of which it is not known how many kernels that is.
    pub(crate) fn mix(&self, graph: Graph) {
        self.with(|graphs| {
            if let Some(kernels) = graphs.get_mut(&graph.0) {
                Arc::make_mut(kernels).is_mixed = true;
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
            graphs.add(Graph(0), name);
        }
        graphs.rename(Graph(0), Graph(9));
        let kernels = graphs.kernels(Graph(9)).unwrap();
        assert_eq!(
            (kernels.count(), kernels.texts()),
            (3, vec!["matmul ×2".to_owned(), "add".to_owned()])
        );
        graphs.forget(Graph(9));
        assert_eq!(graphs.kernels(Graph(9)), None);
    }

    #[test]
    fn a_graph_that_lacks_kernels_has_no_list() {
        let graphs = Graphs::default();
        graphs.spoil(Graph(1));
        graphs.add(Graph(1), "matmul");
        graphs.rename(Graph(1), Graph(2));
        assert_eq!(graphs.kernels(Graph(2)), None);
        graphs.forget(Graph(2));
        graphs.add(Graph(2), "matmul");
        assert!(graphs.kernels(Graph(2)).is_some());
    }

    #[test]
    fn many_kernels_are_counted_together() {
        let mut kernels = Kernels::default();
        (0..100).for_each(|index| kernels.add(&format!("k{index}")));
        assert_eq!(
            (kernels.count(), kernels.texts().len()),
            (100, MAX_NAMES + 1)
        );
    }
}
