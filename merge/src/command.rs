//! The command `trace-merge`.

pub(crate) mod arguments;
pub(crate) mod cli;
pub(crate) mod descriptors;
