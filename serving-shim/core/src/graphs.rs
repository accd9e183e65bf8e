//! The kernels of graphs: the launches while each graph was captured.

use crate::lock::lock;
use crate::runtime::Graph;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Maximum number of stored graphs. A serving engine has at most one for each batch size and layer.
const MAX_GRAPHS: usize = 4096;
/// Maximum number of distinct kernels of a graph. All further ones share one entry.
const MAX_NAMES: usize = 64;

/// The kernels of a graph: name and number of launches, in the order of their first launch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kernels {
    names: Vec<(String, u64)>,
    others: u64,
    /// True if launches are missing because they were not observed.
    lacks: bool,
}

/// The kernels of each graph.
#[derive(Debug, Default)]
pub(crate) struct Graphs(Mutex<BTreeMap<usize, Arc<Kernels>>>);

impl Kernels {
    fn add(&mut self, name: &str) {
        let is_full = self.names.len() >= MAX_NAMES;
        match self.names.iter_mut().find(|(kernel, _)| kernel == name) {
            Some((_, count)) => *count += 1,
            None if is_full => self.others += 1,
            None => self.names.push((name.to_owned(), 1)),
        }
    }

    /// Returns the number of launches that were captured into the graph. One replay runs at least this many kernels.
    pub(crate) fn count(&self) -> u64 {
        self.names.iter().map(|(_, count)| count).sum::<u64>() + self.others
    }

    /// Returns a text such as `matmul ×32` for each kernel of the graph: its name and the number of its launches.
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
    /// Calls `change` with the kernels of a graph. If the graph is new and there are too many, nothing happens.
    fn change(&self, graph: Graph, change: impl FnOnce(&mut Kernels)) {
        let mut graphs = lock(&self.0);
        if graphs.len() < MAX_GRAPHS || graphs.contains_key(&graph.0) {
            change(Arc::make_mut(graphs.entry(graph.0).or_default()));
        }
    }

    /// Calls `act` while the lock is held.
    #[cfg(test)]
    pub(crate) fn hold(&self, act: impl FnOnce()) {
        let _graphs = lock(&self.0);
        act();
    }

    /// Adds a launch that was captured into a graph.
    pub(crate) fn add(&self, graph: Graph, name: &str) {
        self.change(graph, |kernels| kernels.add(name));
    }

    /// Marks a graph as incomplete: launches were captured into it before the capture was noticed.
    pub(crate) fn spoil(&self, graph: Graph) {
        self.change(graph, |kernels| kernels.lacks = true);
    }

    /// Sets the handle by which a graph is replayed.
    pub(crate) fn rename(&self, from: Graph, to: Graph) {
        let mut graphs = lock(&self.0);
        if let Some(kernels) = graphs.remove(&from.0) {
            graphs.insert(to.0, kernels);
        }
    }

    /// Forgets a destroyed graph, whose handle may be used again.
    pub(crate) fn forget(&self, graph: Graph) {
        lock(&self.0).remove(&graph.0);
    }

    /// Returns the kernels of a graph, if its whole capture was observed.
    pub(crate) fn kernels(&self, graph: Graph) -> Option<Arc<Kernels>> {
        let kernels = lock(&self.0).get(&graph.0).cloned();
        kernels.filter(|kernels| !kernels.lacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_that_lacks_kernels_has_no_list() {
        let graphs = Graphs::default();
        graphs.spoil(Graph(1));
        graphs.add(Graph(1), "matmul");
        graphs.rename(Graph(1), Graph(2));
        assert!(graphs.kernels(Graph(2)).is_none());
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
