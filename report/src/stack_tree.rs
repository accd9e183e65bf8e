//! Builds a tree of stacks from nested slices.

use crate::gather::name_keys::NameKey;
use crate::gather::slice_record::{SliceRecord, thread_of};
use crate::table::{RowKind, StackTime};
use trace_store::hashed_map::HashedMap;

/// Maximum number of distinct stacks. Beyond it, slices are counted in the nearest existing stack around them.
const MOST: usize = 50_000;

/// A tree of stacks. The number of a node is its index.
pub(crate) struct StackTree<'a> {
    keys: &'a [NameKey],
    /// Process of each thread.
    processes: &'a [usize],
    nodes: Vec<StackTime>,
    node_keys: Vec<u32>,
    children: HashedMap<u32>,
}

/// Returns the hash of a name in a process or, for a child, in a node. The hash is unique because the mixing is
/// invertible.
fn child(process: usize, node: Option<u32>, key: u32) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let place = match node {
        None => (process as u64) << 1,
        Some(node) => u64::from(node) << 1 | 1,
    };
    let mixed = (place << 32 | u64::from(key)).wrapping_mul(ODD);
    mixed ^ mixed >> 32
}

impl<'a> StackTree<'a> {
    pub(crate) fn new(keys: &'a [NameKey], processes: &'a [usize]) -> StackTree<'a> {
        StackTree {
            keys,
            processes,
            nodes: Vec::new(),
            node_keys: Vec::new(),
            children: HashedMap::default(),
        }
    }

    /// Returns the number of the tree's node for a slice whose surrounding slice has the node `parent`, or `None` for
    /// async spans, which are not part of stacks. If the tree is full, a slice without a node gets `parent`, which may
    /// be `None`.
    pub(crate) fn open(&mut self, parent: Option<u32>, slice: &SliceRecord) -> Option<u32> {
        let process = self.process(slice)?;
        let child = child(process, parent, slice.key);
        if let Some(node) = self.children.get(&child) {
            return Some(*node);
        }
        if self.nodes.len() >= MOST {
            return parent;
        }
        let number = u32::try_from(self.nodes.len()).ok()?;
        let key = &self.keys[slice.key as usize];
        self.nodes.push(StackTime {
            parent: parent.map(|parent| parent as usize),
            process,
            row_kind: key.row_kind,
            name: key.name.clone(),
            ..StackTime::default()
        });
        self.node_keys.push(slice.key);
        self.children.insert(child, number);
        Some(number)
    }

    fn process(&self, slice: &SliceRecord) -> Option<usize> {
        let kind = self.keys.get(slice.key as usize)?.row_kind;
        let thread = thread_of(slice.track).filter(|_| kind != RowKind::Async)?;
        self.processes.get(thread).copied()
    }

    /// Adds a slice's call and its times in ns to a node of the tree. A slice without a node of its own adds only its
    /// self time to the node around it.
    pub(crate) fn count(&mut self, node: u32, key: u32, dur_ns: i64, self_ns: i64) {
        let has_own_node = self.node_keys[node as usize] == key;
        let node = &mut self.nodes[node as usize];
        node.tsub_ns = node.tsub_ns.saturating_add(self_ns);
        if has_own_node {
            node.ncall += 1;
            node.ttot_ns = node.ttot_ns.saturating_add(dur_ns);
        }
    }

    /// Ends the tree and returns its stacks with their counts and times. A stack comes after its parent (the stack
    /// around it).
    pub(crate) fn finish(self) -> Vec<StackTime> {
        self.nodes
    }
}
