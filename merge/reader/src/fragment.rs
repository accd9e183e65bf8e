//! Finds the segments and the ring of each recorder, opens them and puts them together.

pub mod assemble;
pub mod assembly;
pub mod blocks;
pub mod exit;
pub mod file;
pub(crate) mod file_watch;
pub mod foreign_trace;
pub mod input;
pub mod liveness;
pub mod load;
pub mod recording;
pub mod removal;
pub mod ring;
#[cfg(test)]
pub mod sample;
pub mod settle;
pub mod temp_folder;
