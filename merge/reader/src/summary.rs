//! Summarizes lines: their events, times, names, losses and damage. The report, and every decision before the trace is written, are based on these
//! summaries.

pub mod chunk_summary;
pub mod gaps;
pub mod nesting;
pub mod summarize;
pub mod summary_builder;
