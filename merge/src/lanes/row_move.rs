//! The row and the form in which an event is written.

use crate::pass::by_chunk::OfEvent;
use crate::pass::chunk::EventRef;
use crate::store::sorter::{Record, word_at};

/// The number of a thread's own row.
const OWN_ROW: u32 = u32::MAX;

/// The form in which an event is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// The event as it was recorded.
    #[default]
    Recorded,
    /// A begin (`B`) becomes a complete span (`X`) of length 0, because a viewer would process the end first.
    Whole,
    /// The end of such a span is not written.
    Omitted,
}

/// An event that moves or changes its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Move {
    pub(crate) at: EventRef,
    row: u32,
    pub(crate) form: Form,
}

impl Move {
    /// Creates a move to an added row. Without a row the event stays on its thread's own one.
    pub(crate) fn new(at: EventRef, row: Option<u32>, form: Form) -> Move {
        Move {
            at,
            row: row.unwrap_or(OWN_ROW),
            form,
        }
    }

    /// Returns the number of the row to which it moves.
    pub(crate) fn row(&self) -> Option<u32> {
        (self.row != OWN_ROW).then_some(self.row)
    }
}

impl OfEvent for Move {
    fn at(&self) -> EventRef {
        self.at
    }
}

impl Record for Move {
    const BYTES: usize = 13;

    fn store(&self, out: &mut Vec<u8>) {
        for word in [self.at.chunk, self.at.nth, self.row] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.push(self.form as u8);
    }

    fn load(bytes: &[u8]) -> Self {
        Move {
            at: EventRef {
                chunk: word_at(bytes, 0),
                nth: word_at(bytes, 4),
            },
            row: word_at(bytes, 8),
            form: match bytes[12] {
                0 => Form::Recorded,
                1 => Form::Whole,
                _ => Form::Omitted,
            },
        }
    }
}
