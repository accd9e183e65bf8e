//! The ids of requests, in pieces of a fixed size, so that they are sorted like the requests' moments.

use trace_store::sorter::Record;

/// Bytes of an id in one piece. vLLM's ids have 41, so they fit.
const PIECE: usize = 43;

/// A piece of a request's id. Sorted, the pieces of an id are together, and each is there once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamePiece {
    /// Hash of the request's run and id.
    pub(crate) request: u64,
    nth: u32,
    len: u8,
    bytes: [u8; PIECE],
}

impl Record for NamePiece {
    fn join(&mut self, next: &Self) -> bool {
        self == next
    }
}

impl NamePiece {
    /// Returns the pieces of an id.
    pub(crate) fn of(request: u64, id: &str) -> impl Iterator<Item = NamePiece> {
        let pieces = id.as_bytes().chunks(PIECE);
        pieces.zip(0..).map(move |(piece, nth)| {
            let mut bytes = [0; PIECE];
            bytes[..piece.len()].copy_from_slice(piece);
            NamePiece {
                request,
                nth,
                len: u8::try_from(piece.len()).unwrap_or(0),
                bytes,
            }
        })
    }

    /// Returns the bytes of the id in this piece.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len).min(PIECE)]
    }
}
