//! Which begins and ends belong together.

use super::thread_index::ThreadIndex;
use crate::event::line::Event;
use crate::pass::by_chunk::OfEvent;
use crate::pass::chunk::EventRef;
use crate::pass::labels::Labels;
use crate::pass::visit::{AtOnce, ChunkView, visit};
use crate::span::group_key::{GroupEvent, whole};
use crate::span::groups::{Joined, join};
use crate::span::lane_events::ArgsPlace;
use crate::store::sorter::{Record, Sorted, Sorter};
use crate::summary::thread::RecordedThread;
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
    let (sources, chunks) = (job.sources, job.chunks);
    let numbers = (0..chunks.len()).filter(|number| chunks[*number].halves);
    let half = |(recording, thread): RecordedThread, at: EventRef, event: &Event<'_>| {
        if !matches!(event.phase, Begin | End | AsyncBegin | AsyncEnd) {
            return None;
        }
        let row = index.of(recording, thread)?;
        let target = job.plan.targets[recording].get(&thread)?;
        let (whole, role) = whole(event, target, row.thread, false)?;
        let shift_ns = job.plan.shifts_ns[recording];
        Some(GroupEvent {
            whole,
            at_ns: event.ts_ns.saturating_add(shift_ns),
            at,
            labels: Labels::of(event),
            role,
            more: ArgsPlace::default(),
        })
    };
    let look = |number: usize| ChunkView { sources, chunks }.shown(number, half);
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
