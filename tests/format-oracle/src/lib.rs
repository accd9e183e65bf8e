//! The fragment format as docs/FORMAT.md describes it, read and written a second time for tests.
//!
//! [`reader`] gives what the fragments of a run hold: recorder and merge are held against it. [`writer`] makes fragments and rings byte by byte.
//! Neither shares code with recorder, `sa-format` or merge, so that a mistake which those share shows.
#![expect(
    clippy::unwrap_used,
    reason = "tests: a file that cannot be written is a failed test"
)]

pub mod reader;
pub mod writer;
