//! Maps and sets with keys that are hashes already.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map with keys that are hashes already, and are not hashed again.
pub type HashedMap<V> = HashMap<u64, V, BuildHasherDefault<KeyHasher>>;

/// A set of values that are hashes already, and are not hashed again.
pub type HashedSet = HashSet<u64, BuildHasherDefault<KeyHasher>>;

/// A hasher that returns the key itself.
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
