//! The seam through which rows leave the fold.

use super::{IdleInterval, StepRow};
use crate::table::Recorded;
use std::io;

/// Receives the rows of tables that are too long to be kept in memory, while a run is folded. The rows of a table come in the order of their processes and
/// start times; of a process that is worker and engine, the steps of the worker come first.
pub trait RowSink {
    /// Takes what was recorded, before any row.
    ///
    /// # Errors
    /// If rows cannot be stored.
    fn begin(&mut self, recorded: &Recorded) -> io::Result<()>;

    /// Takes a step.
    ///
    /// # Errors
    /// If it cannot be stored.
    fn step(&mut self, step: &StepRow) -> io::Result<()>;

    /// Takes an idle interval.
    ///
    /// # Errors
    /// If it cannot be stored.
    fn idle(&mut self, interval: &IdleInterval) -> io::Result<()>;
}
