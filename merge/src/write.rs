//! The second pass: lines copied, patched and written as a trace.

pub(crate) mod addition;
pub(crate) mod copy;
pub(crate) mod output;
pub(crate) mod sink;
pub(crate) mod split;
pub(crate) mod timeline;
pub(crate) mod writer;
