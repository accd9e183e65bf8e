//! What one chunk says of requests, until it is handed over.

use super::records::{Alias, FlowPhases, ProgramFlow, RequestReach};
use trace_store::hashed_map::HashedMap;

/// Most ids before they are handed over: a chunk that mentions more says of some of them twice. All workers together have no more than so many, as far as
/// each has a few.
const MOST: usize = 1 << 14;
const LEAST: usize = 1 << 10;
const MOST_OF_ALL: usize = 1 << 16;

/// Returns the maximum number of ids in the batch of one of so many workers.
pub(super) fn most_of_batch(workers: usize) -> usize {
    (MOST_OF_ALL / workers.max(1)).clamp(LEAST, MOST)
}

/// The requests of a chunk.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) requests: HashedMap<RequestReach>,
    /// Flows that other processes may continue, by flow and thread.
    pub(super) flows: HashedMap<ProgramFlow>,
    /// The other flows.
    pub(super) phases: HashedMap<FlowPhases>,
    pub(super) aliases: Vec<Alias>,
}

impl Batch {
    pub(super) fn is_full(&self, most: usize) -> bool {
        self.requests.len() >= most || self.phases.len() >= most || self.flows.len() >= most
    }

    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.flows.clear();
        self.phases.clear();
        self.aliases.clear();
    }
}
