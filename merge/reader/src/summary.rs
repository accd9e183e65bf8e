//! What lines hold: events, times, names, losses and damage, summed up for the report and for everything that is decided before the first byte is written.

pub mod chunk_summary;
pub mod gaps;
pub mod nesting;
pub mod summarize;
pub mod summary_builder;
pub mod thread;
pub mod visitor;
