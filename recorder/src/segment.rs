//! The fragment on disk: its segments, the blocks written to them, and the limit on their size.

pub(crate) mod active_segment;
pub(crate) mod block;
pub(crate) mod bound;
pub(crate) mod file;
pub(crate) mod fragment;
pub(crate) mod names;
pub(crate) mod preallocate;
pub(crate) mod preamble;
pub(crate) mod tally;
