//! Moves spans that overlap others of their thread without nesting to lanes next to it, because
//! viewers would drop them. Everything that belongs to a span moves with it: the spans in it, its
//! end, instants, flows. A begin and an end at the same time become one complete span.

use crate::base::progress::Progress;
use crate::event::line::Event;
use crate::event::patch::Target;
use crate::event::whole::with_complete_span;
use crate::identity::plan::Plan;
use crate::lanes::assign::{
    Form, LaneAssignment, LaneCandidate, Move, RowTotals, assign_targets, lane_candidates,
};
use crate::lanes::move_finder::{MoveFinder, MovedRange};
use crate::pass::chunk::{ChunkRecords, EventRef, find_record};
use crate::pass::history::Histories;
use crate::pass::parallel::{ChunkView, ThreadScan};
use crate::pass::source::Source;
use crate::reader::error::try_folders;
use crate::span::lane_events::{LaneEvent, LaneEventKind, lane_events};
use crate::store::sorter::Sorted;
use crate::summary::chunk_summary::ChunkSummary;
use std::io;
use std::path::{Path, PathBuf};

/// Events that move, and their lanes.
#[derive(Default)]
pub(crate) struct ExtraLanes {
    moves: Sorted<Move>,
    /// All added lanes, by their number.
    pub(crate) targets: Vec<Target>,
    pub(crate) totals: RowTotals,
}

impl ExtraLanes {
    /// Finds overlapping spans and assigns ids to their lanes, also in `plan`. If memory does not
    /// suffice, data goes to files in the first of `folders` that accepts them. If none does, all
    /// spans stay where they are: a trace in which a viewer drops some spans is better than no
    /// trace.
    pub(crate) fn find(
        view: ChunkView<'_>,
        summaries: &[ChunkSummary],
        histories: Histories,
        plan: &mut Plan,
        folders: &[PathBuf],
        progress: &Progress,
    ) -> ExtraLanes {
        let shifts_ns = plan.shifts_ns.clone();
        let scan = ThreadScan {
            view,
            shifts_ns: &shifts_ns,
            progress,
        };
        let candidates = lane_candidates(summaries, histories, plan, &shifts_ns);
        if candidates.is_empty() {
            return ExtraLanes::default();
        }
        match try_folders(folders, |folder| {
            ExtraLanes::assign(&scan, &candidates, folder)
        }) {
            Ok((mut extra_lanes, added)) => {
                // Done last, so that the processes do not get lanes that do not exist.
                extra_lanes.targets = assign_targets(&added, &candidates, &mut plan.processes);
                extra_lanes
            }
            Err(error) => {
                let mut extra_lanes = ExtraLanes::default();
                extra_lanes.totals.failed = Some(error.to_string());
                extra_lanes
            }
        }
    }

    /// Assigns each span to a lane. Also returns the index of the candidate that each added lane
    /// belongs to.
    fn assign(
        scan: &ThreadScan<'_>,
        candidates: &[LaneCandidate],
        folder: &Path,
    ) -> io::Result<(ExtraLanes, Vec<u32>)> {
        let numbered = (0..).zip(candidates);
        let threads = numbered
            .flat_map(|(number, candidate)| candidate.threads.iter().map(move |t| (*t, number)));
        let events = lane_events(scan, &threads.collect(), folder)?;
        let moved = find_moves(&events, folder)?;
        let mut assignment = LaneAssignment::new(folder, &moved);
        events.iter().try_for_each(|event| assignment.add(*event))?;
        drop(events);
        let extra_lanes = ExtraLanes {
            moves: assignment.moves.finish()?,
            totals: RowTotals {
                added: assignment.added.len(),
                ..assignment.totals
            },
            ..ExtraLanes::default()
        };
        Ok((extra_lanes, assignment.added))
    }

    /// Returns the args of the end of a span that is written as a complete one.
    pub(crate) fn end_args<'a>(&self, begin: EventRef, sources: &[Source<'a>]) -> &'a [u8] {
        let found = find_record(&self.moves, begin);
        found.map_or(&[], |found| found.end_args.text(sources))
    }

    /// Returns the moves of chunk `number`. They give, for each event in turn, the lane on which it
    /// is shown, and if it is written in another form.
    pub(crate) fn chunk_moves<'a>(
        &'a self,
        number: usize,
        sources: &'a [Source<'a>],
    ) -> ChunkMoves<'a> {
        ChunkMoves {
            moves: ChunkRecords::new(&self.moves, number),
            extra_lanes: self,
            sources,
        }
    }
}

/// Finds the spans that overlap others of their thread without nesting, and therefore move to an
/// extra lane (another line of the thread in viewers). `folder` is for temporary files.
fn find_moves(events: &[LaneEvent], folder: &Path) -> io::Result<Sorted<MovedRange>> {
    let mut finder = MoveFinder::new(folder);
    for thread in events.chunk_by(|one, next| one.thread == next.thread) {
        let span = |event: &LaneEvent| {
            let is_span = matches!(event.kind, LaneEventKind::Complete | LaneEventKind::Begin);
            is_span.then_some((event.start, event.end))
        };
        finder.add_thread(thread.iter().map(span))?;
    }
    finder.finish()
}

/// Lane and form in which the next event is written.
#[derive(Clone, Copy, Default)]
pub(crate) struct EventLane<'a> {
    /// Number of the lane to which it moves.
    pub(crate) lane: Option<u32>,
    pub(crate) target: Option<&'a Target>,
    pub(crate) form: Form,
    /// Args of the end of a complete span.
    end_args: &'a [u8],
}

impl EventLane<'_> {
    /// Calls `found` with the event in the form in which it is written.
    #[inline]
    pub(crate) fn with<R>(&self, event: &Event<'_>, found: impl FnOnce(&Event<'_>) -> R) -> R {
        match self.form {
            Form::Whole => with_complete_span(event, self.end_args, found),
            Form::Recorded | Form::Omitted => found(event),
        }
    }
}

/// The events of a chunk that move. They must be queried in order.
pub(crate) struct ChunkMoves<'a> {
    moves: ChunkRecords<'a, Move>,
    extra_lanes: &'a ExtraLanes,
    sources: &'a [Source<'a>],
}

impl<'a> ChunkMoves<'a> {
    /// Returns true if no further event moves.
    pub(crate) fn is_empty(&self) -> bool {
        self.moves.is_empty()
    }

    /// Returns the lane and form of the next event.
    #[inline]
    pub(crate) fn next(&mut self) -> EventLane<'a> {
        let Some(moved) = self.moves.next() else {
            return EventLane::default();
        };
        let lane = moved.lane();
        let index = lane.and_then(|lane| usize::try_from(lane).ok());
        EventLane {
            lane,
            target: index.and_then(|lane| self.extra_lanes.targets.get(lane)),
            form: moved.form,
            end_args: moved.end_args.text(self.sources),
        }
    }
}
