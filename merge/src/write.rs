//! The second pass: copies and patches lines, and writes them as a trace.

pub(crate) mod addition;
pub(crate) mod copy;
pub(crate) mod output;
pub(crate) mod sink;
pub(crate) mod split;
pub(crate) mod timeline;
pub(crate) mod writer;
