//! Spans of some threads and the events that belong to them, in the order in which viewers process
//! events.

use crate::base::span_stack::UNFINISHED;
use crate::event::flow::binds_to_next;
use crate::event::json::scan_object;
use crate::event::line::Event;
use crate::event::whole::has_members;
use crate::pass::chunk::EventRef;
use crate::pass::labels::Labels;
use crate::pass::parallel::ThreadScan;
use crate::pass::source::Source;
use crate::span::group_key::{GroupEvent, GroupKey, GroupRole};
use crate::span::groups::{Matched, match_events};
use crate::store::sorter::{Record, Sorted, Sorter};
use crate::summary::chunk_summary::RecordedThread;
use sa_format::Phase;
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// Part of a thread's events, complete or to be matched.
enum LanePart {
    Complete(LaneEvent),
    BeginOrEnd(GroupEvent<ArgsPosition>),
}

/// Returns all events on the threads that `threads` numbers. If memory does not suffice, they go to
/// files in `folder`.
pub(crate) fn lane_events(
    scan: &ThreadScan<'_>,
    threads: &HashMap<RecordedThread, u32>,
    folder: &Path,
) -> io::Result<Sorted<LaneEvent>> {
    let (mut events, mut begins_and_ends) = (Sorter::new(folder), Sorter::new(folder));
    let part = |thread: RecordedThread, at: EventRef, event: &Event<'_>| {
        let (number, shift_ns) = (*threads.get(&thread)?, scan.shifts_ns[thread.0]);
        let role = match event.phase {
            Phase::Begin => GroupRole::Begin,
            Phase::End => GroupRole::End,
            _ => return LaneEvent::new(event, number, at, shift_ns).map(LanePart::Complete),
        };
        let source = scan.view.chunks[at.chunk as usize].source;
        Some(LanePart::BeginOrEnd(GroupEvent {
            group: GroupKey::Thread(number),
            at_ns: event.ts_ns + shift_ns,
            at,
            labels: Labels::new(event),
            role,
            data: match role {
                GroupRole::End => ArgsPosition::new(event, source, &scan.view.sources[source]),
                _ => ArgsPosition::default(),
            },
        }))
    };
    for part in scan.map_events(threads.keys().copied(), part) {
        match part {
            LanePart::BeginOrEnd(event) => begins_and_ends.push(event),
            LanePart::Complete(event) => events.push(event),
        }?;
    }
    match_events(&begins_and_ends.finish()?, |matched| match matched {
        Matched::Span(begin, end) => match begin.group {
            GroupKey::Thread(number) => events.push(LaneEvent::from_span(number, begin, end)),
            GroupKey::Async(..) | GroupKey::Flow(..) => Ok(()),
        },
        Matched::End(_) | Matched::Other(..) => Ok(()),
    })?;
    events.finish()
}

/// Kind of an event. At the same time, viewers process complete spans first, then the other kinds
/// in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LaneEventKind {
    /// `X`
    Complete,
    /// `B`
    Begin,
    /// A flow that ends at the next span.
    Next,
    /// An instant or a flow in a span.
    Point,
}

/// An event of a thread, ordered by its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaneEvent {
    /// Number of the thread.
    pub(crate) thread: u32,
    pub(crate) start: i64,
    pub(crate) kind: LaneEventKind,
    /// Negative duration of a complete span: of spans that begin together, the longest comes first.
    pub(crate) longest: i64,
    pub(crate) at: EventRef,
    /// End of a span, or [`UNFINISHED`] if it has none.
    pub(crate) end: i64,
    /// Event that ends a begun span, if there is one.
    pub(crate) end_at: Option<EventRef>,
    /// Args of an end that is not written.
    pub(crate) end_args: ArgsPosition,
}

impl LaneEvent {
    /// Converts an event that does not need a counterpart. Returns `None` if it is not bound to the
    /// thread's spans.
    fn new(event: &Event<'_>, thread: u32, at: EventRef, shift_ns: i64) -> Option<LaneEvent> {
        let start = event.ts_ns + shift_ns;
        let (kind, end) = match event.phase {
            Phase::Complete => (LaneEventKind::Complete, start + event.dur_ns),
            Phase::FlowEnd if binds_to_next(event) => (LaneEventKind::Next, start),
            Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd => (LaneEventKind::Point, start),
            Phase::Instant | Phase::LegacyInstant if !event.is_instant_of_process() => {
                (LaneEventKind::Point, start)
            }
            _ => return None,
        };
        let is_complete = kind == LaneEventKind::Complete;
        Some(LaneEvent {
            thread,
            start,
            kind,
            longest: if is_complete { -event.dur_ns } else { 0 },
            at,
            end,
            end_at: None,
            end_args: ArgsPosition::default(),
        })
    }

    /// Creates the event for a begun span and its end. A begin and an end at the same time become a
    /// complete span, because a viewer would process the end first.
    fn from_span(
        thread: u32,
        begin: &GroupEvent<ArgsPosition>,
        end: Option<&GroupEvent<ArgsPosition>>,
    ) -> LaneEvent {
        let instant_end = end.filter(|end| end.at_ns == begin.at_ns);
        LaneEvent {
            thread,
            start: begin.at_ns,
            kind: instant_end.map_or(LaneEventKind::Begin, |_| LaneEventKind::Complete),
            longest: 0,
            at: begin.at,
            end: end.map_or(UNFINISHED, |end| end.at_ns),
            end_at: end.map(|end| end.at),
            end_args: instant_end.map(|end| end.data).unwrap_or_default(),
        }
    }
}

impl Record for LaneEvent {}

/// Position of args in the bytes of a source. The length is 0 if the args are missing or empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArgsPosition {
    /// Number of the source.
    source: u32,
    len: u32,
    start: u64,
}

impl ArgsPosition {
    /// Returns the position of an event's args. `number` is the number of its source.
    fn new(event: &Event<'_>, number: usize, source: &Source<'_>) -> ArgsPosition {
        // Of most lines, only the members up to the time have been parsed.
        let fields = scan_object(event.line).unwrap_or(event.fields);
        let args = fields.args.slice(event.line);
        if !has_members(args) {
            return ArgsPosition::default();
        }
        ArgsPosition {
            source: u32::try_from(number).unwrap_or(u32::MAX),
            len: u32::try_from(args.len()).unwrap_or(0),
            start: (args.as_ptr().addr() - source.bytes.as_ptr().addr()) as u64,
        }
    }

    /// Returns the args as a JSON object. They are arbitrary text if the source was overwritten,
    /// and empty if it has become too short.
    pub(crate) fn text<'a>(self, sources: &[Source<'a>]) -> &'a [u8] {
        let bytes = sources.get(self.source as usize).map(|source| source.bytes);
        let start = usize::try_from(self.start).unwrap_or(usize::MAX);
        let rest = bytes.and_then(|bytes| bytes.get(start..));
        rest.and_then(|rest| rest.get(..self.len as usize))
            .unwrap_or_default()
    }
}

impl Record for ArgsPosition {}
