//! A trace in parts, cut in time: where the cuts are, and the parts' files.
//!
//! Every part is what a window between two cuts shows, with the ids and times that it has in the whole trace. So a span that crosses a cut is whole
//! in each part that it reaches into, and marked; every other event is in exactly one.

mod bins;
pub(crate) mod portion;
pub(crate) mod report;

mod crossing;
mod cut;
mod write;

pub(crate) use write::{PartsTarget, SplitTrace, refuse_split, write_parts};
