//! The end of a recording, and the beginning of another one.

pub(crate) mod finish;
pub(crate) mod restart;
