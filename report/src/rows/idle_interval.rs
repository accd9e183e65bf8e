//! Idle intervals of devices.

use super::column::{FigureColumn, TableRow, int, process, text, us};
use crate::table::IdleCause;

/// A time in which a device was idle for one cause. A gap between two slices may have several intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleInterval {
    /// The device, or the worker whose device is not recorded, by its number among the processes.
    pub process: usize,
    /// The cause.
    pub cause: IdleCause,
    /// The start, in ns from the start of the trace.
    pub start_ns: i64,
    /// The duration.
    pub dur_ns: i64,
    /// The start of the gap between two slices that it is a part of.
    pub gap_start_ns: i64,
}

impl TableRow for IdleInterval {
    const TABLE: &'static str = "idle";
    const COLUMNS: &'static [FigureColumn<IdleInterval>] = &[
        process("process", "upid", |idle| Some(idle.process)),
        text("cause", |idle| Some(idle.cause.name())),
        int("start_ns", |idle| Some(idle.start_ns)),
        us("dur_us", |idle| Some(idle.dur_ns)),
        int("gap_start_ns", |idle| Some(idle.gap_start_ns)),
    ];

    fn process(&self) -> Option<usize> {
        Some(self.process)
    }
}
