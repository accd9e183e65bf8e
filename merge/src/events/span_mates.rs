//! Which begins and ends belong together.

use super::span_mate::SpanMate;
use super::thread_index::ThreadIndex;
use crate::event::edges::Lies;
use crate::event::line::Event;
use crate::event::patch::Target;
use crate::pass::by_chunk::ByChunk;
use crate::pass::chunk::EventRef;
use crate::pass::labels::Labels;
use crate::pass::visit::{AtOnce, visit};
use crate::select::filter_scan::whole;
use crate::span::group_key::GroupRole;
use crate::span::matcher::join;
use crate::span::span_half::{ArgsPlace, Side, SpanHalf};
use crate::store::sorter::Sorter;
use crate::write::job::Job;
use sa_format::Phase;
use std::io;
use std::path::Path;

/// The other half of each begin and end that has one.
pub(super) fn span_mates(
    job: &Job<'_>,
    index: &ThreadIndex,
    folder: &Path,
) -> io::Result<ByChunk<SpanMate>> {
    let mut halves = Sorter::new(folder);
    let chunks = job.chunks;
    let numbers = (0..chunks.len()).filter(|number| chunks[*number].halves);
    let look = |number: usize| of_chunk(job, index, number);
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
fn of_chunk(job: &Job<'_>, index: &ThreadIndex, number: usize) -> Vec<SpanHalf> {
    let mut halves = Vec::new();
    let (chunk, Ok(chunk_number)) = (&job.chunks[number], u32::try_from(number)) else {
        return halves;
    };
    let source = &job.sources[chunk.source];
    let recording = source.recording;
    let (targets, shift_ns) = (&job.plan.targets[recording], job.plan.shifts_ns[recording]);
    chunk.each(source.bytes, |nth, lies, event| {
        if lies == Lies::Outside
            || !matches!(
                event.phase,
                Phase::Begin | Phase::End | Phase::AsyncBegin | Phase::AsyncEnd
            )
        {
            return;
        }
        let thread = (event.pid, event.tid);
        let place = index.of(recording, thread).zip(targets.get(&thread));
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
) -> Option<SpanHalf> {
    let (row, role) = whole(event, target, thread, false)?;
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
        args: ArgsPlace::default(),
    })
}
