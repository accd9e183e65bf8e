//! The longest times in which a device was idle.

use super::device_idle::IdleCause;
use serde::Serialize;

/// A long time in which nothing ran on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LongGap {
    /// The device, by its number among the processes.
    pub process: usize,
    /// When it began, in ns from the begin of the trace.
    pub start_ns: i64,
    /// How long it took.
    pub dur_ns: i64,
    /// What the device waited for most of it.
    pub cause: IdleCause,
    /// How long it waited for that.
    pub cause_ns: i64,
}
