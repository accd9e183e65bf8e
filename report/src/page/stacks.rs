//! Selects the stacks that are wide enough to be seen on a page.

use crate::table::{StackTime, subtrees_ns};
use serde::Serialize;
use std::collections::BTreeMap;

/// Minimum share of its process's time, as a divisor, for a stack to be drawn.
const PARTS: i64 = 2_000;

/// A stack with the time of everything inside it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct PageStack<'a> {
    parent: Option<usize>,
    process: usize,
    name: &'a str,
    ncall: u64,
    self_ns: i64,
    /// Sum of the self times of this stack and of all stacks inside it.
    subtree_ns: i64,
}

/// Selects the call stacks that are wide enough to be seen in a page's flame graph. A stack comes after its parent, and
/// `parent` is the parent's index in the result.
pub(super) fn page_stacks(stacks: &[StackTime]) -> Vec<PageStack<'_>> {
    let subtree_ns = subtrees_ns(stacks);
    let mut process_ns: BTreeMap<usize, i64> = BTreeMap::new();
    let outermost = |(stack, _): &(&StackTime, &i64)| stack.parent.is_none();
    for (stack, ns) in stacks.iter().zip(&subtree_ns).filter(outermost) {
        let sum = process_ns.entry(stack.process).or_default();
        *sum = sum.saturating_add(*ns);
    }
    let mut drawn: Vec<PageStack<'_>> = Vec::new();
    let mut numbers: Vec<Option<usize>> = Vec::with_capacity(stacks.len());
    for (stack, subtree_ns) in stacks.iter().zip(subtree_ns) {
        let parent = stack.parent.map(|parent| numbers[parent]);
        let is_wide = subtree_ns > 0 && subtree_ns >= process_ns[&stack.process] / PARTS;
        let is_drawn = is_wide && parent != Some(None);
        numbers.push(is_drawn.then_some(drawn.len()));
        if is_drawn {
            drawn.push(PageStack {
                parent: parent.flatten(),
                process: stack.process,
                name: &stack.name,
                ncall: stack.ncall,
                self_ns: stack.tsub_ns,
                subtree_ns,
            });
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::RowKind;

    #[test]
    fn narrow_stacks_are_left_out_with_their_children() {
        let stack = |parent, name: &str, tsub_ns| StackTime {
            parent,
            process: 3,
            row_kind: RowKind::Thread,
            name: name.to_owned(),
            ncall: 1,
            ttot_ns: 0,
            tsub_ns,
        };
        let stacks = [
            stack(None, "a", 5_000),
            stack(Some(0), "narrow", 0),
            stack(Some(1), "narrower", 1),
            stack(Some(0), "b", 1_000),
            stack(Some(3), "c", 10),
        ];
        let found: Vec<_> = page_stacks(&stacks)
            .iter()
            .map(|stack| (stack.parent, stack.name, stack.subtree_ns))
            .collect();
        assert_eq!(
            found,
            [
                (None, "a", 6_011),
                (Some(0), "b", 1_010),
                (Some(1), "c", 10)
            ]
        );
    }
}
