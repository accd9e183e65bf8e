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

/// What spans lie on: begins and ends of one row belong together.
pub(crate) trait RowKey: Copy + Ord + Send {
    /// Bytes of a stored key.
    const BYTES: usize;
    /// Appends these bytes.
    fn store(self, out: &mut Vec<u8>);
    /// Reads what [`RowKey::store`] has written.
    fn load(bytes: &[u8]) -> Self;
}

/// Begin or end of a span. Its order is that of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SpanHalf<K> {
    pub(crate) row: K,
    pub(crate) start: i64,
    pub(crate) side: Side,
    pub(crate) at: EventRef,
    pub(crate) labels: Labels,
}

impl SpanHalf<u32> {
    /// What an event of a thread is, if it is one.
    pub(super) fn of(
        event: &Event<'_>,
        row: u32,
        at: EventRef,
        shift_ns: i64,
    ) -> Option<SpanHalf<u32>> {
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

/// The number of a thread.
impl RowKey for u32 {
    const BYTES: usize = 4;

    fn store(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn load(bytes: &[u8]) -> u32 {
        word_at(bytes, 0)
    }
}

impl<K: RowKey> Record for SpanHalf<K> {
    const BYTES: usize = 25 + K::BYTES;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.start.to_le_bytes());
        let (at, labels) = (self.at, self.labels);
        for word in [at.chunk, at.nth, labels.category, labels.name] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.push(u8::from(self.side == Side::Begin));
        self.row.store(out);
    }

    fn load(bytes: &[u8]) -> Self {
        let [chunk, nth, category, name] = [8, 12, 16, 20].map(|at| word_at(bytes, at));
        SpanHalf {
            row: K::load(&bytes[25..]),
            start: long_at(bytes, 0).cast_signed(),
            side: if bytes[24] == 1 {
                Side::Begin
            } else {
                Side::End
            },
            at: EventRef { chunk, nth },
            labels: Labels { category, name },
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
                (SpanHalf::<u32>::BYTES, half)
            );
        }
    }
}
