//! Reads an engine's objects in each step for the hooks, without running Python code for each request or token.

pub(crate) mod front;
pub(crate) mod http;
pub(crate) mod ids;
pub(crate) mod layout;
pub(crate) mod outputs;
pub(crate) mod stamps;
pub(crate) mod step;
