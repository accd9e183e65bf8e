//! The stacks of a page: those that are wide enough to be seen.

use crate::table::{StackTime, subtrees_ns};
use serde::Serialize;
use std::collections::BTreeMap;

/// A stack that takes less of its process's time than one in so many is not drawn.
const PARTS: i64 = 2_000;

/// A stack, with the time of all that lies in it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct PageStack<'a> {
    parent: Option<usize>,
    process: usize,
    name: &'a str,
    ncall: u64,
    self_ns: i64,
    /// The self times of this stack and of all in it.
    subtree_ns: i64,
}

/// The stacks that are wide enough to be seen, each behind the one around it.
pub(super) fn page_stacks(stacks: &[StackTime]) -> Vec<PageStack<'_>> {
    let subtree_ns = subtrees_ns(stacks);
    let mut of_process: BTreeMap<usize, i64> = BTreeMap::new();
    let outermost = |(stack, _): &(&StackTime, &i64)| stack.parent.is_none();
    for (stack, ns) in stacks.iter().zip(&subtree_ns).filter(outermost) {
        let sum = of_process.entry(stack.process).or_default();
        *sum = sum.saturating_add(*ns);
    }
    let mut kept: Vec<PageStack<'_>> = Vec::new();
    let mut numbers: Vec<Option<usize>> = Vec::with_capacity(stacks.len());
    for (stack, subtree_ns) in stacks.iter().zip(subtree_ns) {
        let parent = stack.parent.map(|parent| numbers[parent]);
        let is_wide = subtree_ns > 0 && subtree_ns >= of_process[&stack.process] / PARTS;
        let is_kept = is_wide && parent != Some(None);
        numbers.push(is_kept.then_some(kept.len()));
        if is_kept {
            kept.push(PageStack {
                parent: parent.flatten(),
                process: stack.process,
                name: &stack.name,
                ncall: stack.ncall,
                self_ns: stack.tsub_ns,
                subtree_ns,
            });
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::RowKind;

    #[test]
    fn what_is_too_narrow_goes_with_all_in_it() {
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
