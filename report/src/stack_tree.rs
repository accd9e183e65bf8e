//! Slices of rows that nest → a tree of the stacks that they form.

use crate::gather::name_keys::NameKey;
use crate::gather::slice_record::{SliceRecord, thread_of};
use crate::table::{RowKind, StackTime};
use trace_store::hashed_map::HashedMap;

/// Stacks that are told apart. What comes later counts for the deepest one that is known.
const MOST: usize = 50_000;

/// All stacks: the numbers of nodes are those of their places.
pub(crate) struct StackTree<'a> {
    keys: &'a [NameKey],
    /// The process of each thread.
    processes: &'a [usize],
    nodes: Vec<StackTime>,
    key_of: Vec<u32>,
    children: HashedMap<u32>,
}

/// Returns the hash of a name in a process or, if there is one, in a node. Two never have one.
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
            key_of: Vec::new(),
            children: HashedMap::default(),
        }
    }

    /// The node of a slice in the one around it. Async work is no stack.
    pub(crate) fn open(&mut self, parent: Option<u32>, slice: &SliceRecord) -> Option<u32> {
        let process = self.process_of(slice)?;
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
        self.key_of.push(slice.key);
        self.children.insert(child, number);
        Some(number)
    }

    fn process_of(&self, slice: &SliceRecord) -> Option<usize> {
        let kind = self.keys.get(slice.key as usize)?.row_kind;
        let thread = thread_of(slice.row).filter(|_| kind != RowKind::Async)?;
        self.processes.get(thread).copied()
    }

    /// Counts a slice of a node. One that found no node of its own is a part of the node around it.
    pub(crate) fn count(&mut self, node: u32, key: u32, dur_ns: i64, self_ns: i64) {
        let is_its_own = self.key_of[node as usize] == key;
        let node = &mut self.nodes[node as usize];
        node.tsub_ns = node.tsub_ns.saturating_add(self_ns);
        if is_its_own {
            node.ncall += 1;
            node.ttot_ns = node.ttot_ns.saturating_add(dur_ns);
        }
    }

    /// The stacks, each behind the one around it.
    pub(crate) fn finish(self) -> Vec<StackTime> {
        self.nodes
    }
}
