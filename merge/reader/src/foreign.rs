//! Traces of other profilers, as inputs beside fragments.
//!
//! A document may hold many events on one line, or one on many, and may be compressed. Each is read once, front to back. Its events go to a temporary file
//! without a name, a line each. That file is then a recording like any other, with processes and flow ids of its own. What is wrong in the document is told
//! by the document's own offsets.

mod clock;
mod content_sum;
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
pub(crate) mod row_metadata;
mod strace;

pub use clock::{Offset, parse_offset};
pub use find::{OtherInputs, find};
pub use read::{ForeignOptions, read};
pub use report::ForeignReport;
