//! A second implementation of the fragment format in docs/FORMAT.md, for tests.
//!
//! [`reader`] returns the contents of a run's fragments, which tests compare with the merge's trace. [`writer`] builds fragments and rings byte by byte.
//! Neither shares code with the recorder, `sa-format` or the merge, so mistakes that these have in common are found.
#![expect(
    clippy::unwrap_used,
    reason = "tests: a file that cannot be written is a failed test"
)]

pub mod reader;
pub mod writer;
