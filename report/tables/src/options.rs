//! Options and result of writing tables.

use crate::unfinished::Unfinished;
use std::path::PathBuf;

/// Folder and ids of the tables.
#[derive(Clone, Debug, Default)]
pub struct TablesOptions {
    /// Folder of the tables. It is created if it does not exist.
    pub to: PathBuf,
    /// True to replace existing tables of the same hosts.
    pub force: bool,
    /// Id of the host with 24 bits, only for runs of one host. By default, it is a hash of the host's name and boot.
    pub host_id: Option<u32>,
    /// Handle to remove the unfinished tables if the process has to end early.
    pub unfinished: Unfinished,
}

/// Counts of the records and bytes that were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of slices, including instants.
    pub slices: u64,
    /// Number of counter values.
    pub samples: u64,
    /// Number of edges of flows.
    pub flows: u64,
    /// Size of all files.
    pub bytes: u64,
}
