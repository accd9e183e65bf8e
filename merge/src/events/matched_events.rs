//! Events of which begins know their ends, and ends their begins.

use super::placed_event::PlacedEvent;
use super::span_mate::SpanMate;
use super::trace_events::TraceEvents;
use crate::Error;
use crate::event::edges::Lies;
use crate::event::line::Event;
use crate::event::patch::Target;
use crate::fragment::temp_folder::in_first;
use crate::pass::by_chunk::ByChunk;
use crate::pass::event_ref::EventRef;
use crate::pass::labels::Labels;
use crate::pass::visit::{AtOnce, visit};
use crate::select::filter_scan::whole;
use crate::span::group_key::{GroupKey, GroupRole};
use crate::span::matcher::join;
use crate::span::span_half::{Side, SpanHalf};
use crate::store::sorter::Sorter;
use std::io;
use std::path::Path;

/// Events of which begins and ends of spans know each other ([`PlacedEvent::other_ns`]).
///
/// They are matched as viewers do: an end belongs to the last begin on its thread, or of its id and category, that has its name and category and no end yet.
pub struct MatchedEvents<'e, 'a> {
    events: &'e TraceEvents<'a>,
    mates: ByChunk<SpanMate>,
}

impl<'e, 'a> MatchedEvents<'e, 'a> {
    pub(super) fn of(events: &'e TraceEvents<'a>) -> Result<MatchedEvents<'e, 'a>, Error> {
        let (_, mates) = in_first(events.folders, |folder| mates(events, folder))?;
        Ok(MatchedEvents { events, mates })
    }

    /// Goes over all events as [`TraceEvents::fold`] does.
    ///
    /// # Errors
    /// The first one of `merge`, or a temporary file that cannot be read.
    pub fn fold<T: Send>(
        &self,
        begin: impl Fn() -> T + Send + Sync,
        of_event: impl Fn(&mut T, &PlacedEvent<'_>) + Send + Sync,
        merge: impl FnMut(T) -> Result<(), Error> + Send,
    ) -> Result<(), Error> {
        let mates = |number| self.mates.of_chunk(number).map(Some);
        self.events.fold_with(mates, begin, of_event, merge)
    }
}

/// The other half of each begin and end that has one.
fn mates(events: &TraceEvents<'_>, folder: &Path) -> io::Result<ByChunk<SpanMate>> {
    let mut halves = Sorter::new(folder);
    let chunks = events.job.chunks;
    let numbers = (0..chunks.len()).filter(|number| chunks[*number].halves);
    let look = |number: usize| of_chunk(events, number);
    visit(numbers, AtOnce::Few, look, |found| {
        found.into_iter().try_for_each(|half| halves.push(half))
    })?;
    let mut mates = Sorter::new(folder);
    join(&halves.finish()?, |begin, end| {
        let Some(end) = end else { return Ok(()) };
        for (half, other) in [(begin, end), (end, begin)] {
            mates.push(SpanMate {
                at: half.at,
                other_ns: other.start,
            })?;
        }
        Ok(())
    })?;
    ByChunk::new(mates.finish()?, chunks.len(), folder)
}

/// The begins and ends in a chunk.
fn of_chunk(events: &TraceEvents<'_>, number: usize) -> Vec<SpanHalf<GroupKey>> {
    let (job, mut halves) = (&events.job, Vec::new());
    let (chunk, Ok(chunk_number)) = (&job.chunks[number], u32::try_from(number)) else {
        return halves;
    };
    let source = &job.sources[chunk.source];
    let recording = source.recording;
    let (targets, shift_ns) = (&job.plan.targets[recording], job.plan.shifts_ns[recording]);
    chunk.each(source.bytes, |nth, lies, event| {
        let thread = (event.pid, event.tid);
        let place = events.index.of(recording, thread).zip(targets.get(&thread));
        if lies == Lies::Outside || !matches!(event.phase, b'B' | b'E' | b'b' | b'e') {
            return;
        }
        halves.extend(place.and_then(|(row, target)| {
            let start = event.ts_ns.saturating_add(shift_ns);
            let at = EventRef {
                chunk: chunk_number,
                nth,
            };
            half(event, row.thread, target, at, start)
        }));
    });
    halves
}

/// What half of a span an event is, if it is one and has another half.
fn half(
    event: &Event<'_>,
    thread: u32,
    target: &Target,
    at: EventRef,
    start: i64,
) -> Option<SpanHalf<GroupKey>> {
    let (row, role) = whole(event, target, (thread, false))?;
    let side = match role {
        GroupRole::Begin => Side::Begin,
        GroupRole::End => Side::End,
        GroupRole::Within | GroupRole::Start | GroupRole::Next => return None,
    };
    Some(SpanHalf {
        row,
        start,
        side,
        at,
        labels: Labels::of(event),
    })
}
