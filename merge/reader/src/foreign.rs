//! Reads the traces of other profilers, which can be merged together with fragments.
//!
//! A document may contain many events on one line or one event on many lines, and it may be compressed. Each document is read once from beginning to
//! end. Its events are written to an unnamed temporary file, one per line. This file is then a recording like any other, with its own processes and
//! flow ids. Damage is reported with offsets in the document.

mod clock;
mod content_sum;
pub(crate) mod display_hints;
mod document;
mod early_arrows;
mod event;
mod find;
mod lines;
mod members;
mod names;
mod pieces;
mod place;
mod read;
mod report;
mod resync;
mod strace;

pub use clock::{Offset, parse_offset};
pub use find::{OtherInputs, find};
pub use read::{ForeignOptions, read};
pub use report::ForeignReport;
