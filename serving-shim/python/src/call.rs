//! Arguments of calls, such as ids and integers, and warnings about misused calls.

pub(crate) mod id;
pub(crate) mod integer;
pub(crate) mod misuse;
