//! An event that means something only together with others.

use crate::base::begun_spans::Half;
use crate::event::flow::trace_id;
use crate::event::json::scan_object;
use crate::event::line::Event;
use crate::event::patch::Target;
use crate::pass::chunk::EventRef;
use crate::pass::labels::Labels;
use crate::store::sorter::{Record, long_at, word_at};
use sa_format::Phase;
use xxhash_rust::xxh3::xxh3_64_with_seed;

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

/// An event that belongs to others. Its order is that of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupEvent<T> {
    pub(crate) whole: GroupKey,
    pub(crate) at_ns: i64,
    pub(crate) at: EventRef,
    /// Hashes of its name and category, if they decide which end belongs to which begin.
    pub(crate) labels: Labels,
    pub(crate) role: GroupRole,
    /// The rest of what is known of it.
    pub(crate) more: T,
}

/// The part of an event in a filter or a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Choice {
    pub(crate) row: ThreadNumber,
    /// Set if the filter asks for it.
    pub(crate) wanted: bool,
    /// Set if it is in the window.
    pub(crate) inside: bool,
}

impl<T> Half for GroupEvent<T> {
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

    fn can_end(&self, begin: &Self) -> bool {
        self.labels.end(begin.labels)
    }
}

impl<T: Record> Record for GroupEvent<T> {
    const BYTES: usize = 42 + T::BYTES;

    fn store(&self, out: &mut Vec<u8>) {
        let (kind, [id, key]) = match self.whole {
            GroupKey::Thread(row) => (0, [u64::from(row), 0]),
            GroupKey::Async(id, key) => (1, [id, key]),
            GroupKey::Flow(id, key) => (2, [id, key]),
        };
        for word in [id, key, self.at_ns.cast_unsigned()] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        self.at.store(out);
        self.labels.store(out);
        out.extend_from_slice(&[kind, self.role as u8]);
        self.more.store(out);
    }

    fn load(bytes: &[u8]) -> Self {
        let (id, key) = (long_at(bytes, 0), long_at(bytes, 8));
        GroupEvent {
            whole: match bytes[40] {
                0 => GroupKey::Thread(word_at(bytes, 0)),
                1 => GroupKey::Async(id, key),
                _ => GroupKey::Flow(id, key),
            },
            at_ns: long_at(bytes, 16).cast_signed(),
            at: EventRef::load(bytes, 24),
            labels: Labels::load(bytes, 32),
            role: match bytes[41] {
                0 => GroupRole::Begin,
                1 => GroupRole::Within,
                2 => GroupRole::End,
                3 => GroupRole::Start,
                _ => GroupRole::Next,
            },
            more: T::load(&bytes[42..]),
        }
    }
}

impl Record for Choice {
    const BYTES: usize = 6;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.row.to_le_bytes());
        out.extend_from_slice(&[u8::from(self.wanted), u8::from(self.inside)]);
    }

    fn load(bytes: &[u8]) -> Self {
        Choice {
            row: word_at(bytes, 0),
            wanted: bytes[4] == 1,
            inside: bytes[5] == 1,
        }
    }
}

/// Returns the group of an event and its role there, if it belongs to other events. Flows are groups only if `flows` is true.
pub(crate) fn whole(
    event: &Event<'_>,
    target: &Target,
    row: ThreadNumber,
    flows: bool,
) -> Option<(GroupKey, GroupRole)> {
    let role = match event.phase {
        Phase::Begin if event.is_unfinished() => return None,
        Phase::Begin => return Some((GroupKey::Thread(row), GroupRole::Begin)),
        Phase::End => return Some((GroupKey::Thread(row), GroupRole::End)),
        Phase::AsyncBegin => GroupRole::Begin,
        Phase::AsyncInstant => GroupRole::Within,
        Phase::AsyncEnd => GroupRole::End,
        Phase::FlowStart if flows => GroupRole::Start,
        Phase::FlowStep | Phase::FlowEnd if flows => GroupRole::Next,
        _ => return None,
    };
    let (id, _) = trace_id(event, target.ordinal)?;
    let fields = scan_object(event.line)?;
    let category = xxh3_64_with_seed(fields.cat.of(event.line), 0);
    let whole = match role {
        GroupRole::Start | GroupRole::Next => {
            GroupKey::Flow(id, xxh3_64_with_seed(fields.name.of(event.line), category))
        }
        _ => GroupKey::Async(id, category),
    };
    Some((whole, role))
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
                labels: Labels {
                    category: 9,
                    name: nth,
                },
                role,
                more: Choice {
                    row: 3,
                    wanted: nth > 2,
                    inside: nth > 1,
                },
            };
            let mut bytes = Vec::new();
            stored.store(&mut bytes);
            assert_eq!(
                bytes.len(),
                GroupEvent::<Choice>::BYTES,
                "docs/decisions/0036 says how many"
            );
            assert_eq!(GroupEvent::load(&bytes), stored);
        }
    }
}
