//! The fragment format as docs/FORMAT.md describes it, read and written a second time for tests.
//!
//! [`reader`] returns the content of a run's fragments, which tests compare with the merge's trace. [`writer`] makes fragments and rings byte by byte.
//! Neither shares code with recorder, `sa-format` or merge. So a mistake that these have in common is found.
#![expect(
    clippy::unwrap_used,
    reason = "tests: a file that cannot be written is a failed test"
)]

pub mod reader;
pub mod writer;
