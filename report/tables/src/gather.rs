//! What the events of a trace give to its tables: records of fixed size, and a log of what they have no room for.

pub(crate) mod args;
pub(crate) mod chunk_rows;
pub(crate) mod entry;
pub(crate) mod item;
pub(crate) mod rows;
pub(crate) mod texts;
