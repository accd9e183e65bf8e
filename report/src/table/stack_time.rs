//! The time of a call stack.

use super::row_kind::RowKind;
use serde::Serialize;

/// A name below the names that were open around it on its row: a node of a tree of all stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StackTime {
    /// The name around it, by its number among these; `None` of the outermost one.
    pub parent: Option<usize>,
    /// The process, by its number among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// What the slices lie on: never async work, which calls nothing.
    pub row_kind: RowKind,
    /// The name.
    pub name: String,
    /// How many slices there are.
    pub ncall: u64,
    /// What they took together, in ns.
    pub ttot_ns: i64,
    /// What they took without those in them.
    pub tsub_ns: i64,
}

/// The self times of each stack and of all in it. Each stands behind the one around it.
pub(crate) fn subtrees_ns(stacks: &[StackTime]) -> Vec<i64> {
    let mut subtrees_ns: Vec<i64> = stacks.iter().map(|stack| stack.tsub_ns).collect();
    for (number, stack) in stacks.iter().enumerate().rev() {
        if let Some(parent) = stack.parent {
            subtrees_ns[parent] = subtrees_ns[parent].saturating_add(subtrees_ns[number]);
        }
    }
    subtrees_ns
}

/// A stack's names, the outermost first.
pub(crate) fn path<'a>(stacks: &'a [StackTime], stack: &'a StackTime) -> Vec<&'a StackTime> {
    let around = |of: &&StackTime| of.parent.map(|parent| &stacks[parent]);
    let mut path: Vec<&StackTime> = std::iter::successors(Some(stack), around).collect();
    path.reverse();
    path
}
