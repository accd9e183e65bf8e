//! The ring of a process: the file that survives a kill, its slots and lanes, and the counts of
//! lost events.

pub(crate) mod chain;
pub(crate) mod counters;
pub(crate) mod file;
pub(crate) mod free_lanes;
pub(crate) mod lanes;
pub(crate) mod loss;
pub(crate) mod open_entry;
pub(crate) mod open_horizon;
pub(crate) mod pending;
pub(crate) mod slot;
pub(crate) mod text_area;
