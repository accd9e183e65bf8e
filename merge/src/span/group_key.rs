//! An event that means something only together with others.

use crate::base::begun_spans::Half;
use crate::event::flow::trace_id;
use crate::event::json::scan_object;
use crate::event::line::Event;
use crate::event::patch::Target;
use crate::pass::chunk::EventRef;
use crate::pass::labels::Labels;
use crate::store::sorter::Record;
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

impl<T: Record> Record for GroupEvent<T> {}

impl Record for Choice {}

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

const _: () = assert!(size_of::<GroupEvent<Choice>>() == 64); // docs/decisions/0036 says how many bytes
