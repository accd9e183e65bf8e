//! A value of many while all of them are sorted.

use trace_store::sorter::{Record, long_at};

/// A time that belongs to something: a duration to a name, the time of a token to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ValueRecord {
    pub(crate) of: u64,
    pub(crate) ns: i64,
}

impl Record for ValueRecord {
    const BYTES: usize = 16;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.of.to_le_bytes());
        out.extend_from_slice(&self.ns.to_le_bytes());
    }

    fn load(bytes: &[u8]) -> Self {
        ValueRecord {
            of: long_at(bytes, 0),
            ns: long_at(bytes, 8).cast_signed(),
        }
    }
}
