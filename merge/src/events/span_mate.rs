//! The other half of a span of which begin and end are events of their own.

use crate::pass::by_chunk::OfEvent;
use crate::pass::chunk::EventRef;
use crate::store::sorter::{Record, long_at, word_at};

/// When the other half of the span is that an event begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SpanMate {
    pub(super) at: EventRef,
    pub(super) other_ns: i64,
}

impl OfEvent for SpanMate {
    fn at(&self) -> EventRef {
        self.at
    }
}

impl Record for SpanMate {
    const BYTES: usize = 16;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.other_ns.to_le_bytes());
        for word in [self.at.chunk, self.at.nth] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    fn load(bytes: &[u8]) -> Self {
        SpanMate {
            at: EventRef {
                chunk: word_at(bytes, 8),
                nth: word_at(bytes, 12),
            },
            other_ns: long_at(bytes, 0).cast_signed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mate_comes_back_from_a_file_as_it_was() {
        let mate = SpanMate {
            at: EventRef { chunk: 3, nth: 70 },
            other_ns: -5,
        };
        let mut bytes = Vec::new();
        mate.store(&mut bytes);
        assert_eq!(
            (bytes.len(), SpanMate::load(&bytes)),
            (SpanMate::BYTES, mate)
        );
    }
}
