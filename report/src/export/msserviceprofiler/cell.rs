//! What stands in cells of several tables.

use crate::table::recorded::Recorded;

/// A duration in ms.
pub(super) fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// The id of a process where it ran.
pub(super) fn process_id(recorded: &Recorded, process: usize) -> String {
    let process = recorded.processes.get(process);
    process.map_or_else(String::new, |process| process.pid.to_string())
}

/// The host of a process, empty if nothing names it.
pub(super) fn host(recorded: &Recorded, process: usize) -> &str {
    let process = recorded.processes.get(process);
    let host = process.and_then(|process| process.host.as_deref());
    host.unwrap_or_default()
}
