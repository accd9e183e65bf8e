//! The recorder of a process: its parts, the flushing of its ring, and the records about itself.

pub(crate) mod async_ids;
pub(crate) mod errand;
pub(crate) mod flush;
pub(crate) mod helper;
pub(crate) mod mask;
pub(crate) mod naming;
pub(crate) mod open_spans;
pub(crate) mod rate;
pub(crate) mod reclaim;
pub(crate) mod rounds;
pub(crate) mod self_records;
pub(crate) mod start;
pub(crate) mod starting;
pub(crate) mod state;
pub(crate) mod switch;
pub(crate) mod visit;
