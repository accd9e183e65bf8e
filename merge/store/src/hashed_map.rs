//! Maps and sets whose keys are hashes already.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are hashes already: they are not hashed again.
pub type HashedMap<V> = HashMap<u64, V, BuildHasherDefault<KeyHasher>>;

/// A set of hashes, which are not hashed again.
pub type HashedSet = HashSet<u64, BuildHasherDefault<KeyHasher>>;

/// Takes a key for its own hash.
#[derive(Debug, Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}
