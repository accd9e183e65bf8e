//! What hooks into an engine ask of its objects in each step, without code of Python for each request or token.

pub(crate) mod front;
pub(crate) mod http;
pub(crate) mod ids;
pub(crate) mod outputs;
mod scheduled;
pub(crate) mod stamps;
pub(crate) mod step;
