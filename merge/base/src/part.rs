//! A range of lines.

use std::ops::Range;

/// A range of a file cut at newlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Whether a checksum vouches for the lines.
    pub trusted: bool,
}

impl Part {
    /// Returns the part with a range of bytes. `trusted` is true if a checksum covers its lines.
    pub fn of(range: Range<usize>, trusted: bool) -> Part {
        Part {
            start: range.start,
            end: range.end,
            trusted,
        }
    }

    /// All of some lines that nothing vouches for.
    pub fn all_of(lines: &[u8]) -> Part {
        Part::of(0..lines.len(), false)
    }
}
