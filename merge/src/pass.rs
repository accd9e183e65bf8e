//! The first pass over all chunks: it summarizes what each chunk contains.

pub(crate) mod chunk;
pub(crate) mod first_pass;
pub(crate) mod history;
pub(crate) mod labels;
pub(crate) mod parallel;
pub(crate) mod source;
