//! Begin or end of a span, as an event of its own.

use crate::event::line::Event;
use crate::pass::event_ref::EventRef;
use crate::pass::labels::Labels;
use crate::store::sorter::{Record, long_at, word_at};

/// Of what happens at one time, viewers take ends first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// `E`
    End,
    /// `B`
    Begin,
}

/// Begin or end of a span of a thread. Its order is that of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SpanHalf {
    /// Which of the threads.
    pub(crate) row: u32,
    pub(crate) start: i64,
    pub(crate) side: Side,
    pub(crate) at: EventRef,
    pub(crate) labels: Labels,
}

impl SpanHalf {
    /// What an event of a row is, if it is one.
    pub(super) fn of(event: &Event<'_>, row: u32, at: EventRef, shift_ns: i64) -> Option<SpanHalf> {
        let side = match event.phase {
            b'B' => Side::Begin,
            b'E' => Side::End,
            _ => return None,
        };
        Some(SpanHalf {
            row,
            start: event.ts_ns + shift_ns,
            side,
            at,
            labels: Labels::of(event),
        })
    }
}

impl Record for SpanHalf {
    const BYTES: usize = 29;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.start.to_le_bytes());
        let (at, labels) = (self.at, self.labels);
        for word in [self.row, at.chunk, at.nth, labels.category, labels.name] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.push(u8::from(self.side == Side::Begin));
    }

    fn load(bytes: &[u8]) -> Self {
        SpanHalf {
            row: word_at(bytes, 8),
            start: long_at(bytes, 0).cast_signed(),
            side: if bytes[28] == 1 {
                Side::Begin
            } else {
                Side::End
            },
            at: EventRef {
                chunk: word_at(bytes, 12),
                nth: word_at(bytes, 16),
            },
            labels: Labels {
                category: word_at(bytes, 20),
                name: word_at(bytes, 24),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_comes_back_from_a_file_as_it_was() {
        for side in [Side::Begin, Side::End] {
            let half = SpanHalf {
                row: 7,
                start: -3,
                side,
                at: EventRef {
                    chunk: 1 << 20,
                    nth: 9,
                },
                labels: Labels {
                    category: u32::MAX,
                    name: 5,
                },
            };
            let mut bytes = Vec::new();
            half.store(&mut bytes);
            assert_eq!(
                (bytes.len(), SpanHalf::load(&bytes)),
                (SpanHalf::BYTES, half)
            );
        }
    }
}
