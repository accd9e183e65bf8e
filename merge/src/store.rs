//! What is too much for memory: sorting, vectors and files that are mapped.

pub(crate) mod mapped_file;
pub(crate) mod search;
pub(crate) mod sorter;
pub(crate) mod spill_vec;
