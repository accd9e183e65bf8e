//! The ids of requests in the args of events: where they may stand, and what they are.

pub(crate) mod candidates;
pub(crate) mod fast_args;
pub(crate) mod form;
pub(crate) mod ids;
