//! A value of many while all of them are sorted.

use trace_store::sorter::Record;

/// A time that belongs to something: a duration to a name, the time of a token to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ValueRecord {
    pub(crate) of: u64,
    pub(crate) ns: i64,
}

impl Record for ValueRecord {}
