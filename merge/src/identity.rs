//! Recordings, pids and tids → processes and threads with ids that are unique in the trace.

mod device_clues;
mod devices;
pub(crate) mod identities;
pub(crate) mod plan;
pub(crate) mod process;
pub(crate) mod viewer_metadata;
