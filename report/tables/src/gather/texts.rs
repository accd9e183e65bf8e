//! Numbers for texts that many events have in common, so that each text is stored only once.

use parquet::data_type::ByteArray;
use std::sync::{PoisonError, RwLock};
use trace_store::hashed_map::HashedMap;

/// Maximum size of all stored texts. Further texts are stored with each event.
const MAX_BYTES: usize = 16 << 20;
/// Estimated overhead of each text in addition to its bytes.
const OVERHEAD_BYTES: usize = 128;
/// Number of a text that is not stored, because there was no room for it.
pub(crate) const UNNUMBERED: u32 = u32::MAX;

/// Two texts that belong together: a category and a name, or both forms of an arg's key. The first one may be absent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TextPair(pub(crate) Option<ByteArray>, pub(crate) ByteArray);

impl TextPair {
    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, ByteArray::len) + self.1.len()
    }
}

/// Numbered pairs of texts. The numbers depend on the timing of threads, so they must not have an influence on the output.
#[derive(Default)]
pub(crate) struct Texts(RwLock<Stored>);

#[derive(Default)]
struct Stored {
    /// Numbers by hash.
    numbers: HashedMap<u32>,
    pairs: Vec<TextPair>,
    bytes: usize,
}

impl Texts {
    /// Returns the number of the pair with this hash, or [`UNNUMBERED`] if there is no room for it.
    pub(crate) fn number(&self, hash: u64, pair: impl FnOnce() -> TextPair) -> u32 {
        let stored = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = stored.numbers.get(&hash) {
            return *number;
        }
        if stored.bytes >= MAX_BYTES {
            return UNNUMBERED;
        }
        drop(stored);
        let pair = pair();
        let mut stored = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = stored.numbers.get(&hash) {
            return *number;
        }
        let number = u32::try_from(stored.pairs.len()).unwrap_or(UNNUMBERED);
        stored.bytes += OVERHEAD_BYTES + pair.bytes();
        stored.numbers.insert(hash, number);
        stored.pairs.push(pair);
        number
    }

    /// Returns all pairs in the order of their numbers.
    pub(crate) fn into_pairs(self) -> Vec<TextPair> {
        let stored = self.0.into_inner();
        stored.unwrap_or_else(PoisonError::into_inner).pairs
    }
}
