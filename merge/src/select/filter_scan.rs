//! What a look at the events of a chunk finds, where an event by itself does not tell whether it is shown.

use crate::event::event_mask::Mask;
use crate::event::flow::trace_id;
use crate::event::json::scan_object;
use crate::event::line::Event;
use crate::event::patch::Target;
use crate::pass::chunk::EventRef;
use crate::select::flow_enclosure::Spot;
use crate::span::group_key::{GroupEvent, GroupKey, GroupRole, ThreadNumber};
use crate::summary::thread::RecordedThread;
use sa_format::Phase;
use std::collections::HashSet;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What was found in a chunk.
#[derive(Default)]
pub(crate) struct ScannedChunk {
    pub(crate) mask: Mask,
    pub(crate) mates: Vec<GroupEvent>,
    pub(crate) spots: Vec<Spot>,
    pub(crate) names: Vec<MetadataEvent>,
    pub(crate) used: HashSet<ThreadNumber>,
    /// The flows, by their ids in the trace, that stand for requests beside those that are asked for.
    pub(crate) other_flows: HashSet<u64>,
}

/// Metadata of a process or of a thread.
pub(crate) struct MetadataEvent {
    pub(crate) at: EventRef,
    pub(crate) place: RecordedThread,
    pub(crate) of_thread: bool,
}

impl ScannedChunk {
    /// Adds an event that belongs to others. One of a flow counts only in the window, and where events are asked for only in a span that is shown.
    pub(crate) fn add(&mut self, mate: GroupEvent, only_in_spans: bool) {
        match mate.role {
            GroupRole::Start | GroupRole::Next if !mate.inside => {}
            GroupRole::Start | GroupRole::Next if only_in_spans => {
                self.spots.extend(Spot::of_flow(&mate));
            }
            GroupRole::Start | GroupRole::Next if !mate.wanted => {}
            _ => self.mates.push(mate),
        }
    }

    /// Shows an event that stands for itself; a span may cover events of flows.
    pub(crate) fn show(
        &mut self,
        event: &Event<'_>,
        at_ns: i64,
        at: EventRef,
        row: ThreadNumber,
        covers: bool,
    ) {
        self.mask.set(at.nth as usize);
        self.used.insert(row);
        let end_ns = match event.phase {
            Phase::Complete => at_ns.saturating_add(event.dur_ns),
            Phase::Begin => i64::MAX,
            _ => return,
        };
        if covers {
            self.spots.push(Spot::of_span((row, (at_ns, end_ns))));
        }
    }
}

/// What the event belongs to and its role in it, if it belongs to any other; flows only if `flows`.
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
