//! What one chunk says of requests, until it is handed over.

use super::records::{Alias, RequestReach};
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
    /// Ids that a flow of their recorder stands for.
    pub(super) linked: Vec<u64>,
    pub(super) aliases: Vec<Alias>,
}

impl Batch {
    /// That of one of so many workers.
    pub(super) fn new(workers: usize) -> Batch {
        Batch {
            most: (MOST_OF_ALL / workers.max(1)).clamp(LEAST, MOST),
            requests: HashedMap::default(),
            linked: Vec::new(),
            aliases: Vec::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.requests.len() >= self.most || self.linked.len() >= 4 * self.most
    }

    /// Forgets where requests are seen that their recorder links: nobody asks.
    pub(super) fn drop_linked(&mut self) {
        for key in &self.linked {
            self.requests.remove(key);
        }
    }

    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.linked.clear();
        self.aliases.clear();
    }
}
