//! A range of lines.

/// A range of a file cut at newlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Part {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Whether a checksum vouches for the lines.
    pub trusted: bool,
}

impl Part {
    /// All of some lines that nothing vouches for.
    pub fn all_of(lines: &[u8]) -> Part {
        Part {
            start: 0,
            end: lines.len(),
            trusted: false,
        }
    }

    /// A part of it.
    pub fn within(self, range: std::ops::Range<usize>) -> Part {
        Part {
            start: range.start,
            end: range.end,
            ..self
        }
    }
}
