//! What one chunk says of requests, until it is handed over.

use super::records::{Alias, FlowPhases, ProgramFlow, RequestReach};
use trace_store::hashed_map::HashedMap;

/// Most ids before they are handed over: a chunk that mentions more says of some of them twice. All workers together have no more than so many, as far as
/// each has a few.
const MOST: usize = 1 << 14;
const LEAST: usize = 1 << 10;
const MOST_OF_ALL: usize = 1 << 16;

/// The requests of a chunk.
pub(super) struct Batch {
    most: usize,
    pub(super) requests: HashedMap<RequestReach>,
    /// Flows that the program starts.
    pub(super) flows: Vec<ProgramFlow>,
    /// The keys of flows that other processes may continue, each with a thread on which the program draws it.
    pub(super) flow_threads: HashedMap<()>,
    pub(super) phases: HashedMap<FlowPhases>,
    pub(super) aliases: Vec<Alias>,
}

impl Batch {
    /// That of one of so many workers.
    pub(super) fn new(workers: usize) -> Batch {
        Batch {
            most: (MOST_OF_ALL / workers.max(1)).clamp(LEAST, MOST),
            requests: HashedMap::default(),
            flows: Vec::new(),
            flow_threads: HashedMap::default(),
            phases: HashedMap::default(),
            aliases: Vec::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.requests.len() >= self.most
            || self.phases.len() >= self.most
            || self.flow_threads.len() >= self.most
    }

    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.flows.clear();
        self.flow_threads.clear();
        self.phases.clear();
        self.aliases.clear();
    }
}
