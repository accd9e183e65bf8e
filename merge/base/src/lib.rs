//! Numbers, text, times, folders and stacks of spans: the parts of the merge that do not depend on events.
//!
//! In: arbitrary bytes, and paths that other programs may change at any time. Out: exact numbers, and files that were opened without following links.
//!
//! The modules [`number`] and [`swar`] read and write the digits of a line eight or sixteen bytes at a time. [`folder`] opens a folder once, and everything
//! below it by its descriptor. [`access`] determines who may read the files that are derived from others. [`span_stack`] and [`begun_spans`] nest spans for
//! the merge, the tables and the report. Only this crate converts times between microsecond texts and whole nanoseconds.
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
pub mod plural;
pub mod progress;
pub mod size;
pub mod span_stack;
pub mod swar;
