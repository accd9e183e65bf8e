//! The run of this process: its configuration, its identity, the run directory, and the cleaning of
//! that directory.

pub(crate) mod cleaning;
pub(crate) mod config;
pub(crate) mod control;
pub(crate) mod folder;
pub(crate) mod identity;
pub(crate) mod membership;
pub(crate) mod owner;
pub(crate) mod previous;
pub(crate) mod removed;
