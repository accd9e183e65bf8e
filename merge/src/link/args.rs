//! Request ids in the args of events: where they can be, and how to read them.

pub(crate) mod candidates;
pub(crate) mod fast_args;
pub(crate) mod form;
pub(crate) mod ids;
