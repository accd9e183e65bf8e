//! Finds the segments and the ring of each recorder, opens them and puts them together.

pub mod assemble;
pub mod assembly;
pub mod blocks;
pub mod exit;
pub mod file;
pub mod input;
pub mod liveness;
pub mod load;
pub mod recording;
pub mod removal;
pub mod ring;
#[cfg(test)]
#[path = "../tests/support/sample.rs"]
pub mod sample;
pub mod settle;
