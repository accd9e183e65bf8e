//! A range of lines in a file.

use std::ops::Range;

/// A range of a file that begins and ends at line boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
    /// True if a checksum covers the lines.
    pub trusted: bool,
}

impl Part {
    /// Creates a part from a range of bytes. `trusted` is true if a checksum covers its lines.
    pub fn from_range(range: Range<usize>, trusted: bool) -> Part {
        Part {
            start: range.start,
            end: range.end,
            trusted,
        }
    }

    /// Returns a part of all these lines. No checksum covers them.
    pub fn whole(lines: &[u8]) -> Part {
        Part::from_range(0..lines.len(), false)
    }
}
