//! The run that this process belongs to: its configuration, its identity, the run directory, and what is cleaned up there.

pub(crate) mod cleaning;
pub(crate) mod config;
pub(crate) mod control;
pub(crate) mod folder;
pub(crate) mod identity;
pub(crate) mod membership;
pub(crate) mod owner;
pub(crate) mod previous;
pub(crate) mod removed;
