//! Collects data for the tables from the events of a trace: records of fixed size, and a log of data that does not fit into them.

pub(crate) mod args;
pub(crate) mod chunk_records;
pub(crate) mod entry;
pub(crate) mod event_record;
pub(crate) mod lanes;
pub(crate) mod texts;
