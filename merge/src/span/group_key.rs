//! An event that means something only together with others.

use crate::span::lane_events::At;
use crate::store::sorter::{Record, long_at, word_at};

/// A thread of a recording, by its number among all that have events: there are many mates.
pub(crate) type Row = u32;

/// What an event is in what it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Begin, what lies within, and end of a span.
    Begin,
    Within,
    End,
    /// Start of a flow, and all that comes after it.
    Start,
    Next,
}

/// What belongs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Whole {
    /// Spans of a thread.
    Thread(Row),
    /// Spans of an id in a category.
    Async(u64, u64),
    /// A flow's id, with its category and name.
    Flow(u64, u64),
}

/// An event that belongs to others. Its order is that of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mate {
    pub(crate) whole: Whole,
    pub(crate) at_ns: i64,
    pub(crate) at: At,
    pub(crate) row: Row,
    /// What name and category are told by, of the begin and the end of a thread's span.
    pub(crate) labels: At,
    pub(crate) role: Role,
    /// Whether the filter asks for it, and whether it lies in the window.
    pub(crate) wanted: bool,
    pub(crate) inside: bool,
}

impl Record for Mate {
    const BYTES: usize = 48;

    fn store(&self, out: &mut Vec<u8>) {
        let (kind, [id, key]) = match self.whole {
            Whole::Thread(row) => (0, [u64::from(row), 0]),
            Whole::Async(id, key) => (1, [id, key]),
            Whole::Flow(id, key) => (2, [id, key]),
        };
        for word in [id, key, self.at_ns.cast_unsigned()] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        for at in [self.at, self.labels] {
            out.extend_from_slice(&at.chunk.to_le_bytes());
            out.extend_from_slice(&at.nth.to_le_bytes());
        }
        out.extend_from_slice(&self.row.to_le_bytes());
        let flags = u8::from(self.wanted) | u8::from(self.inside) << 1;
        out.extend_from_slice(&[kind, self.role as u8, flags, 0]);
    }

    fn load(bytes: &[u8]) -> Self {
        let roles = [Role::Begin, Role::Within, Role::End, Role::Start];
        let at = |at: usize| At {
            chunk: word_at(bytes, at),
            nth: word_at(bytes, at + 4),
        };
        Mate {
            whole: match bytes[44] {
                0 => Whole::Thread(word_at(bytes, 0)),
                1 => Whole::Async(long_at(bytes, 0), long_at(bytes, 8)),
                _ => Whole::Flow(long_at(bytes, 0), long_at(bytes, 8)),
            },
            at_ns: long_at(bytes, 16).cast_signed(),
            at: at(24),
            labels: at(32),
            row: word_at(bytes, 40),
            role: roles
                .get(usize::from(bytes[45]))
                .copied()
                .unwrap_or(Role::Next),
            wanted: bytes[46] & 1 == 1,
            inside: bytes[46] & 2 == 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mate_is_stored_whole() {
        use Role::{Begin, End, Next, Start, Within};
        let wholes = [Whole::Thread(9), Whole::Async(1, 2), Whole::Flow(3, 4)];
        for (role, nth) in [Begin, Within, End, Start, Next].into_iter().zip(0..) {
            let stored = Mate {
                whole: wholes[nth as usize % 3],
                at_ns: -7,
                at: At { chunk: 7, nth },
                row: 3,
                labels: At { chunk: 9, nth },
                role,
                wanted: nth > 2,
                inside: nth > 1,
            };
            let mut bytes = Vec::new();
            stored.store(&mut bytes);
            assert_eq!(bytes.len(), Mate::BYTES, "ARCHITECTURE.md says how many");
            assert_eq!(Mate::load(&bytes), stored);
        }
    }
}
