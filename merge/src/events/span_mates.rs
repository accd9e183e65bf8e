//! Which begins and ends belong together.

use super::thread_index::ThreadIndex;
use crate::event::edges::Lies;
use crate::pass::by_chunk::OfEvent;
use crate::pass::chunk::EventRef;
use crate::pass::labels::Labels;
use crate::pass::visit::{AtOnce, visit};
use crate::span::group_key::{GroupEvent, whole};
use crate::span::groups::{Joined, join};
use crate::span::lane_events::ArgsPlace;
use crate::store::sorter::{Record, Sorted, Sorter};
use crate::write::job::Job;
use sa_format::Phase::{AsyncBegin, AsyncEnd, Begin, End};
use std::io;
use std::path::Path;

/// The other half of each begin and end that has one.
pub(super) fn span_mates(
    job: &Job<'_>,
    index: &ThreadIndex,
    folder: &Path,
) -> io::Result<Sorted<SpanMate>> {
    let mut halves = Sorter::new(folder);
    let chunks = job.chunks;
    let numbers = (0..chunks.len()).filter(|number| chunks[*number].halves);
    let look = |number: usize| of_chunk(job, index, number);
    halves.extend(visit(numbers, AtOnce::Few, look).flatten())?;
    let mut mates = Sorter::new(folder);
    join(&halves.finish()?, |joined| {
        let Joined::Span(begin, Some(end)) = joined else {
            return Ok(());
        };
        for (half, other) in [(begin, end), (end, begin)] {
            let (at, other_ns) = (half.at, other.at_ns);
            mates.push(SpanMate { at, other_ns })?;
        }
        Ok(())
    })?;
    mates.finish()
}

/// The begins and ends in a chunk.
fn of_chunk(job: &Job<'_>, index: &ThreadIndex, number: usize) -> Vec<GroupEvent<ArgsPlace>> {
    let mut halves = Vec::new();
    let (chunk, Ok(chunk_number)) = (&job.chunks[number], u32::try_from(number)) else {
        return halves;
    };
    let source = &job.sources[chunk.source];
    let recording = source.recording;
    let (targets, shift_ns) = (&job.plan.targets[recording], job.plan.shifts_ns[recording]);
    chunk.each(source.bytes, |nth, lies, event| {
        let thread = (event.pid, event.tid);
        let place = || index.of(recording, thread).zip(targets.get(&thread));
        let half = || {
            let (row, target) = place()?;
            let (whole, role) = whole(event, target, row.thread, false)?;
            let chunk = chunk_number;
            Some(GroupEvent {
                whole,
                at_ns: event.ts_ns.saturating_add(shift_ns),
                at: EventRef { chunk, nth },
                labels: Labels::of(event),
                role,
                more: ArgsPlace::default(),
            })
        };
        let is_half = matches!(event.phase, Begin | End | AsyncBegin | AsyncEnd);
        if is_half && lies != Lies::Outside {
            halves.extend(half());
        }
    });
    halves
}

/// When the other half of the span is that an event begins or ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SpanMate {
    pub(super) at: EventRef,
    pub(super) other_ns: i64,
}

impl OfEvent for SpanMate {
    fn at(&self) -> EventRef {
        self.at
    }
}

impl Record for SpanMate {}
