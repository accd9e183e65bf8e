//! Where the tables go.

use crate::unfinished::Unfinished;
use std::path::PathBuf;

/// Where the tables go, and what they replace.
#[derive(Clone, Debug, Default)]
pub struct TablesOptions {
    /// The folder. It is made if it is not there.
    pub to: PathBuf,
    /// Whether tables that are there for the same hosts are replaced.
    pub force: bool,
    /// The id of the host, of 24 bits, else a hash of its name and boot. It is for runs of one host.
    pub host_id: Option<u32>,
    /// By it they are removed where the process must end early.
    pub unfinished: Unfinished,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Slices, instants among them.
    pub slices: u64,
    /// Values of counters.
    pub samples: u64,
    /// Edges of flows.
    pub flows: u64,
    /// Bytes of all files.
    pub bytes: u64,
}
