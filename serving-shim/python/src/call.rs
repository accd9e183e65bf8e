//! The arguments of calls that are more than a text or a dict, and what is said of calls that nothing can be done with.

pub(crate) mod id;
pub(crate) mod misuse;
pub(crate) mod whole;
