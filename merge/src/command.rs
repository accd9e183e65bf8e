//! The command `trace-merge`.

pub(crate) mod cli;
pub(crate) mod process_limits;
