//! Which groups of rows show the same NPU.

use crate::device::group::VendorGroup;
use crate::identity::device_clues::Clues;
use std::collections::BTreeMap;

/// A scope, the owner of a group and the number of an NPU. `None` stands for any, and `Some(None)` for groups that do not say it.
type GroupKey = (Option<u64>, Option<Option<i64>>, Option<Option<u32>>);

/// Groups with work that may be of the same NPU.
#[derive(Clone, Copy)]
struct WorkGroups {
    /// The first of them: one with a number, its kind of group, and its process.
    first: (bool, Option<VendorGroup>, usize),
    /// The smallest and the largest number of an NPU.
    numbers: Option<(u32, u32)>,
}

impl WorkGroups {
    fn of(process: usize, clues: &Clues) -> WorkGroups {
        let number = clues.number();
        WorkGroups {
            first: (number.is_none(), clues.group, process),
            numbers: number.map(|number| (number, number)),
        }
    }

    fn with(self, other: WorkGroups) -> WorkGroups {
        let numbers = self.numbers.into_iter().chain(other.numbers);
        WorkGroups {
            first: self.first.min(other.first),
            numbers: numbers.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))),
        }
    }
}

/// Returns the NPU that each process is a part of, by the first process that shows its work.
pub(super) fn npus(clues: &[Clues]) -> Vec<Option<usize>> {
    let mut works: BTreeMap<GroupKey, WorkGroups> = BTreeMap::new();
    let numbered = clues.iter().enumerate();
    for (process, of) in numbered.clone().filter(|(_, of)| of.is_npu_work()) {
        let work = WorkGroups::of(process, of);
        for owner in [None, Some(of.owner())] {
            for number in [None, Some(of.number())] {
                let found = works.entry((of.scope, owner, number)).or_insert(work);
                *found = found.with(work);
            }
        }
    }
    let npu = |(process, of): (usize, &Clues)| {
        if !of.is_of_npu() {
            return None;
        }
        let owners = may_be(of.owner()).into_iter();
        let pairs = owners.flat_map(|owner| may_be(of.number()).map(|number| (owner, number)));
        let shared = pairs.filter_map(|(owner, number)| works.get(&(of.scope, owner, number)));
        let shared = shared.copied().reduce(WorkGroups::with)?;
        let is_one = shared.numbers.is_none_or(|(least, most)| least == most);
        match of.number().is_some() || is_one {
            true => Some(shared.first.2),
            false => of.is_npu_work().then_some(process),
        }
    };
    numbered.map(npu).collect()
}

/// Returns what to look up for a group: those that say the same or nothing, or any if it does not say it itself.
fn may_be<T: Copy>(of: Option<T>) -> [Option<Option<T>>; 2] {
    match of {
        Some(_) => [Some(of), Some(None)],
        None => [None; 2],
    }
}
