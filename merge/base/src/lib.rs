//! Numbers, text, times, folders and stacks of spans: what the merge needs and what knows nothing of events.
//!
//! In: bytes that may be anything, and paths that others may change meanwhile. Out: numbers with what they leave open, and files that were opened without
//! following links.
//!
//! The modules [`number`] and [`swar`] read and write the digits of a line eight or sixteen bytes at a time. [`folder`] opens a folder once, and all below it by
//! its descriptor. [`access`] says who may read what was made of it. [`span_stack`] and [`begun_spans`] nest spans for the merge, the tables and the report.
//! Only this crate knows how a time in microseconds becomes whole nanoseconds and back.
//!
//! ```
//! use trace_base::number::{micros, write_micros};
//!
//! let time = micros(b"12.345").ok_or("no number")?;
//! assert_eq!(time.ns(), 12_345);
//!
//! let mut text = Vec::new();
//! write_micros(12_345, &mut text);
//! assert_eq!(text, b"12.345");
//! # Ok::<(), &str>(())
//! ```

pub mod access;
pub mod begun_spans;
pub mod duration;
pub mod file_status;
pub mod folder;
pub mod number;
pub mod out_of_memory;
pub mod part;
pub mod pattern;
pub mod progress;
pub mod size;
pub mod span_stack;
pub mod swar;
