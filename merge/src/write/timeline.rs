//! Sorts all events by time, for a trace that is sorted as a whole. It stores positions and targets
//! but no text, and reads the lines again in that order.

pub(crate) mod order;
pub(crate) mod sorted_writer;

mod chunk_events;
