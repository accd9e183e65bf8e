//! What one chunk says of requests, until it is handed over.

use super::row::{Alias, Reach};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Most ids before they are handed over: a chunk that mentions more says of some of them twice.
const MOST: usize = 1 << 14;

/// The requests of a chunk.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) requests: HashMap<u64, Reach, BuildHasherDefault<KeyHasher>>,
    /// Ids that a flow of their recorder stands for.
    pub(super) linked: Vec<u64>,
    pub(super) aliases: Vec<Alias>,
}

impl Batch {
    pub(super) fn is_full(&self) -> bool {
        self.requests.len() >= MOST || self.linked.len() >= 4 * MOST
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

/// Keys are hashes already.
#[derive(Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}
