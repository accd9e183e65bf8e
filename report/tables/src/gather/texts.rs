//! Texts that many events have, each kept once.

use parquet::data_type::ByteArray;
use std::sync::{PoisonError, RwLock};
use trace_store::hashed_map::HashedMap;

/// Bytes of texts that are kept; further ones stand with each event.
const MOST_BYTES: usize = 16 << 20;
/// Counted for each text beside its bytes.
const OVERHEAD_BYTES: usize = 128;
/// The number of a text that is not kept.
pub(crate) const NOT_KEPT: u32 = u32::MAX;

/// Two texts that come together: a category and a name, or both forms of an arg's key. One that is `None` is absent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TextPair(pub(crate) Option<ByteArray>, pub(crate) ByteArray);

impl TextPair {
    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, ByteArray::len) + self.1.len()
    }
}

/// Pairs by number, numbered as threads find them: nothing that is written may depend on the number.
#[derive(Default)]
pub(crate) struct Texts(RwLock<Kept>);

#[derive(Default)]
struct Kept {
    /// By hash.
    numbers: HashedMap<u32>,
    pairs: Vec<TextPair>,
    bytes: usize,
}

impl Texts {
    /// The number of the pair with this hash, [`NOT_KEPT`] if there is no room for it.
    pub(crate) fn number(&self, hash: u64, pair: impl FnOnce() -> TextPair) -> u32 {
        let read = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = read.numbers.get(&hash) {
            return *number;
        }
        if read.bytes >= MOST_BYTES {
            return NOT_KEPT;
        }
        drop(read);
        let pair = pair();
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = kept.numbers.get(&hash) {
            return *number;
        }
        let number = u32::try_from(kept.pairs.len()).unwrap_or(NOT_KEPT);
        kept.bytes += OVERHEAD_BYTES + pair.bytes();
        kept.numbers.insert(hash, number);
        kept.pairs.push(pair);
        number
    }

    /// All of them by number.
    pub(crate) fn into_pairs(self) -> Vec<TextPair> {
        let kept = self.0.into_inner();
        kept.unwrap_or_else(PoisonError::into_inner).pairs
    }
}
