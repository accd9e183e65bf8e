//! Samples of the requests of each process. An engine and its workers have the same requests.

use std::collections::{BTreeMap, BTreeSet};

/// Number of ids kept per process. The smallest hashes are kept, so that the samples of two processes cover the same
/// part of all requests.
const KEPT: usize = 256;

/// Hashes of some request ids of each process.
#[derive(Debug, Default)]
pub(crate) struct ProcessIds {
    ids: BTreeMap<usize, BTreeSet<u64>>,
}

impl ProcessIds {
    /// Records that a process handled the request whose id has the hash `id`. Only the smallest hashes of each process
    /// are kept.
    pub(crate) fn add(&mut self, process: usize, id: u64) {
        let ids = self.ids.entry(process).or_default();
        if ids.insert(id) && ids.len() > KEPT {
            ids.pop_last();
        }
    }

    /// Adds the id hashes of another chunk.
    pub(crate) fn merge(&mut self, others: ProcessIds) {
        for (process, ids) in others.ids {
            ids.into_iter().for_each(|id| self.add(process, id));
        }
    }

    /// Returns true if both processes have requests, but none in common.
    pub(crate) fn are_apart(&self, one: usize, other: usize) -> bool {
        let has_some = |process| self.ids.contains_key(&process);
        has_some(one) && has_some(other) && self.shared(one, other) == 0
    }

    /// Returns the number of kept request ids that two processes have in common.
    pub(crate) fn shared(&self, one: usize, other: usize) -> usize {
        let ids_of = |process| self.ids.get(&process);
        ids_of(one)
            .zip(ids_of(other))
            .map_or(0, |(one, other)| one.intersection(other).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_with_the_same_requests_share_ids() {
        let mut ids = ProcessIds::default();
        for id in 0..10_000_u64 {
            let hash = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            ids.add(0, hash);
            ids.add(1 + (id % 2) as usize, hash);
        }
        assert!(ids.shared(0, 1) > 64 && ids.shared(0, 2) > 64);
        assert_eq!((ids.shared(1, 2), ids.shared(0, 3)), (0, 0));
        assert!(ids.are_apart(1, 2) && !ids.are_apart(0, 1) && !ids.are_apart(0, 3));
    }
}
