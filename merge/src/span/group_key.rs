//! Events that only have a meaning together with others, such as begins and ends.

use crate::base::begun_spans::BeginOrEnd;
use crate::event::flow::trace_id;
use crate::event::json::scan_object;
use crate::event::line::Event;
use crate::event::patch::Target;
use crate::pass::chunk::EventRef;
use crate::pass::labels::Labels;
use crate::store::sorter::Record;
use sa_format::Phase;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Number of a thread among all threads of all recordings that have events. Small, because there
/// are many [`GroupEvent`]s.
pub(crate) type ThreadNumber = u32;

/// Role of an event in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupRole {
    /// Begin of a span, an event within it, and its end.
    Begin,
    Within,
    End,
    /// Start of a flow, and all events after it.
    Start,
    Next,
}

/// Identity of a group of events that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum GroupKey {
    /// Begins and ends of a thread.
    Thread(ThreadNumber),
    /// Async events, by hashes of their id and category.
    Async(u64, u64),
    /// Events of a flow, by its id and a hash of its category and name.
    Flow(u64, u64),
}

/// An event that belongs to a group. The order is by the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupEvent<T> {
    pub(crate) group: GroupKey,
    pub(crate) at_ns: i64,
    pub(crate) at: EventRef,
    /// Hashes of its name and category, if they decide which begin it ends.
    pub(crate) labels: Labels,
    pub(crate) role: GroupRole,
    /// Additional data for each kind of consumer.
    pub(crate) data: T,
}

/// Relation of an event to the filter and the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FilterState {
    pub(crate) thread: ThreadNumber,
    /// True if the event matches the filter.
    pub(crate) is_selected: bool,
    /// True if the event is in the window.
    pub(crate) is_in_window: bool,
}

impl<T> BeginOrEnd for GroupEvent<T> {
    type Position = EventRef;

    fn time_ns(&self) -> i64 {
        self.at_ns
    }

    fn position(&self) -> EventRef {
        self.at
    }

    fn is_named(&self) -> bool {
        self.labels.name != 0
    }

    fn can_end(&self, begin: &Self) -> bool {
        self.labels.can_end(begin.labels)
    }
}

impl<T: Record> Record for GroupEvent<T> {}

impl Record for FilterState {}

/// Returns the group and role of an event that belongs to other events. Flow events are included
/// only if `flows` is true.
pub(crate) fn group_and_role(
    event: &Event<'_>,
    target: &Target,
    thread: ThreadNumber,
    flows: bool,
) -> Option<(GroupKey, GroupRole)> {
    let role = match event.phase {
        Phase::Begin if event.is_unfinished() => return None,
        Phase::Begin => return Some((GroupKey::Thread(thread), GroupRole::Begin)),
        Phase::End => return Some((GroupKey::Thread(thread), GroupRole::End)),
        Phase::AsyncBegin => GroupRole::Begin,
        Phase::AsyncInstant => GroupRole::Within,
        Phase::AsyncEnd => GroupRole::End,
        Phase::FlowStart if flows => GroupRole::Start,
        Phase::FlowStep | Phase::FlowEnd if flows => GroupRole::Next,
        _ => return None,
    };
    let (id, _) = trace_id(event, target.ordinal)?;
    let fields = scan_object(event.line)?;
    let category = xxh3_64_with_seed(fields.cat.slice(event.line), 0);
    let group = match role {
        GroupRole::Start | GroupRole::Next => GroupKey::Flow(
            id,
            xxh3_64_with_seed(fields.name.slice(event.line), category),
        ),
        _ => GroupKey::Async(id, category),
    };
    Some((group, role))
}

const _: () = assert!(size_of::<GroupEvent<FilterState>>() == 64); // docs/decisions/0036 states this size
