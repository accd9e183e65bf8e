//! A piece of a thread's text.

/// A piece of the writer's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from: u32,
    pub(crate) len: u32,
}

impl Piece {
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.from as usize..self.from as usize + self.len as usize
    }
}
