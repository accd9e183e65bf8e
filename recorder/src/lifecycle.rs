//! How a recording ends, and how another one begins.

pub(crate) mod finish;
pub(crate) mod restart;
