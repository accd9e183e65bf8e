//! A kernel as MSPTI tells of it.

use std::sync::Arc;

/// A kernel that has run.
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
}
