//! An event that means something only together with others.

use crate::base::begun_spans::Half;
use crate::pass::chunk::EventRef;
use crate::pass::labels::Labels;
use crate::store::sorter::{Record, long_at, word_at};

/// A thread of a recording, by its number among all that have events: there are many mates.
pub(crate) type ThreadNumber = u32;

/// What an event is in what it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupRole {
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
pub(crate) enum GroupKey {
    /// Spans of a thread.
    Thread(ThreadNumber),
    /// Spans of an id in a category.
    Async(u64, u64),
    /// A flow's id, with its category and name.
    Flow(u64, u64),
}

impl GroupKey {
    /// Bytes of a stored key.
    pub(super) const BYTES: usize = 17;

    pub(super) fn store(self, out: &mut Vec<u8>) {
        let (kind, [id, key]) = match self {
            GroupKey::Thread(row) => (0, [u64::from(row), 0]),
            GroupKey::Async(id, key) => (1, [id, key]),
            GroupKey::Flow(id, key) => (2, [id, key]),
        };
        for word in [id, key] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.push(kind);
    }

    pub(super) fn load(bytes: &[u8]) -> GroupKey {
        let (id, key) = (long_at(bytes, 0), long_at(bytes, 8));
        match bytes[16] {
            0 => GroupKey::Thread(word_at(bytes, 0)),
            1 => GroupKey::Async(id, key),
            _ => GroupKey::Flow(id, key),
        }
    }
}

/// An event that belongs to others. Its order is that of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupEvent {
    pub(crate) whole: GroupKey,
    pub(crate) at_ns: i64,
    pub(crate) at: EventRef,
    pub(crate) row: ThreadNumber,
    /// What name and category are told by, of the begin and the end of a thread's span.
    pub(crate) labels: Labels,
    pub(crate) role: GroupRole,
    /// Whether the filter asks for it, and whether it lies in the window.
    pub(crate) wanted: bool,
    pub(crate) inside: bool,
}

impl Half for GroupEvent {
    type Place = EventRef;

    fn time_ns(&self) -> i64 {
        self.at_ns
    }

    fn place(&self) -> EventRef {
        self.at
    }

    fn is_named(&self) -> bool {
        self.labels.name != 0
    }

    fn can_end(&self, begin: &GroupEvent) -> bool {
        self.labels.end(begin.labels)
    }
}

impl Record for GroupEvent {
    const BYTES: usize = 48;

    fn store(&self, out: &mut Vec<u8>) {
        self.whole.store(out);
        out.extend_from_slice(&self.at_ns.to_le_bytes());
        let (at, labels) = (self.at, self.labels);
        for word in [at.chunk, at.nth, labels.category, labels.name, self.row] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        let flags = u8::from(self.wanted) | u8::from(self.inside) << 1;
        out.extend_from_slice(&[self.role as u8, flags, 0]);
    }

    fn load(bytes: &[u8]) -> Self {
        let roles = [
            GroupRole::Begin,
            GroupRole::Within,
            GroupRole::End,
            GroupRole::Start,
        ];
        let role = usize::from(bytes[45]);
        let [chunk, nth, category, name, row] = [25, 29, 33, 37, 41].map(|at| word_at(bytes, at));
        GroupEvent {
            whole: GroupKey::load(bytes),
            at_ns: long_at(bytes, 17).cast_signed(),
            at: EventRef { chunk, nth },
            labels: Labels { category, name },
            row,
            role: roles.get(role).copied().unwrap_or(GroupRole::Next),
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
        use GroupRole::{Begin, End, Next, Start, Within};
        let wholes = [
            GroupKey::Thread(9),
            GroupKey::Async(1, 2),
            GroupKey::Flow(3, 4),
        ];
        for (role, nth) in [Begin, Within, End, Start, Next].into_iter().zip(0..) {
            let stored = GroupEvent {
                whole: wholes[nth as usize % 3],
                at_ns: -7,
                at: EventRef { chunk: 7, nth },
                row: 3,
                labels: Labels {
                    category: 9,
                    name: nth,
                },
                role,
                wanted: nth > 2,
                inside: nth > 1,
            };
            let mut bytes = Vec::new();
            stored.store(&mut bytes);
            assert_eq!(
                bytes.len(),
                GroupEvent::BYTES,
                "docs/decisions/0036 says how many"
            );
            assert_eq!(GroupEvent::load(&bytes), stored);
        }
    }
}
