//! The first pass over all chunks: what they hold, in summaries.

pub(crate) mod chunk;
pub(crate) mod first_pass;
pub(crate) mod history;
pub(crate) mod labels;
pub(crate) mod source;
pub(crate) mod visit;
