//! The recorder of a process: its parts, the flushing of its ring, and the records about itself.

pub(crate) mod async_ids;
pub(crate) mod flush;
pub(crate) mod helper;
pub(crate) mod mask;
pub(crate) mod naming;
pub(crate) mod offload;
pub(crate) mod open_spans;
pub(crate) mod periodic;
pub(crate) mod rate;
pub(crate) mod reclaim;
pub(crate) mod self_records;
pub(crate) mod start;
pub(crate) mod start_lock;
pub(crate) mod state;
pub(crate) mod switch;
pub(crate) mod upkeep;
