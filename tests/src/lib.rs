//! Shared pieces of the end-to-end tests: a second reader of what a recorder leaves on disk, and the victims that leave it.
//!
//! The tests start real processes, end them in every way a serving process can end, and compare what those processes acknowledged with what
//! can still be read. `reader` is written from FORMAT.md alone and shares no code with recorder or merge, so that a mistake both share shows.

pub mod autopsy;
pub mod chance;
pub mod host_support;
pub mod kept;
pub mod ledger;
pub mod merged;
pub mod order;
pub mod progress;
pub mod reader;
pub mod stepped;
pub mod verdict;
pub mod victim;
