//! An event that moves to a row beside its thread.

use crate::pass::by_chunk::OfEvent;
use crate::pass::event_ref::EventRef;
use crate::store::sorter::{Record, word_at};

/// An event that moves, and to which of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Move {
    pub(crate) at: EventRef,
    pub(crate) row: u32,
}

impl OfEvent for Move {
    fn at(&self) -> EventRef {
        self.at
    }
}

impl Record for Move {
    const BYTES: usize = 12;

    fn store(&self, out: &mut Vec<u8>) {
        for word in [self.at.chunk, self.at.nth, self.row] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    fn load(bytes: &[u8]) -> Self {
        Move {
            at: EventRef {
                chunk: word_at(bytes, 0),
                nth: word_at(bytes, 4),
            },
            row: word_at(bytes, 8),
        }
    }
}
