//! A kernel or a collective as MSPTI tells of it.

use std::sync::Arc;

/// A kernel that has run, or a collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// The device, by the number that the driver has for it.
    pub(crate) device: u32,
    /// The stream; in a replay perhaps one of the graph's own.
    pub(crate) stream: u32,
    /// When it began and ended, by MSPTI's idea of the wall clock, in ns.
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// That of the launch; in a replay the one of the capture.
    pub(crate) correlation: u64,
    pub(crate) name: Arc<str>,
    /// The communicator, if it is a collective.
    pub(crate) comm: Option<Arc<str>>,
}

impl Kernel {
    pub(crate) fn is_collective(&self) -> bool {
        self.comm.is_some()
    }

    /// What tells it from the others of a replay. It comes again with each replay.
    pub(crate) fn id(&self) -> (bool, u64) {
        (self.is_collective(), self.correlation)
    }
}
