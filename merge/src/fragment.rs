//! What one recorder left behind: segments and ring, found, opened, put together.

pub(crate) mod assemble;
pub(crate) mod assembly;
pub mod blocks;
pub(crate) mod exit;
pub(crate) mod file;
pub(crate) mod file_watch;
pub(crate) mod foreign_trace;
pub(crate) mod input;
pub(crate) mod liveness;
pub(crate) mod load;
pub(crate) mod recording;
pub(crate) mod removal;
pub mod ring;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod settle;
pub(crate) mod temp_folder;
