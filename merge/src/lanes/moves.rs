//! Moves spans that overlap others of their thread without nesting to lanes next to it, because
//! viewers would drop them. Everything that belongs to a span moves with it: the spans in it, its
//! end, instants, flows. A begin and an end at the same time become one complete span.

use crate::base::progress::Progress;
use crate::event::line::Event;
use crate::event::patch::Target;
use crate::event::whole::as_whole;
use crate::identity::plan::Plan;
use crate::lanes::assign::{
    Form, LaneAssignment, LaneCandidate, Move, RowTotals, suspects, targets,
};
use crate::lanes::outcasts::{OutcastFinder, OutcastRange};
use crate::pass::chunk::{EventRef, OfChunk, find};
use crate::pass::history::Histories;
use crate::pass::source::Source;
use crate::pass::visit::{ChunkView, ThreadScan};
use crate::reader::error::in_first;
use crate::span::lane_events::{LaneEvent, LaneEventKind, lane_events};
use crate::store::sorter::Sorted;
use crate::summary::chunk_summary::ChunkSummary;
use std::io;
use std::path::{Path, PathBuf};

/// Events that move, and their lanes.
#[derive(Default)]
pub(crate) struct Overflow {
    moves: Sorted<Move>,
    /// All added lanes, by their number.
    pub(crate) rows: Vec<Target>,
    pub(crate) totals: RowTotals,
}

impl Overflow {
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
    ) -> Overflow {
        let shifts_ns = plan.shifts_ns.clone();
        let scan = ThreadScan {
            view,
            shifts_ns: &shifts_ns,
            progress,
        };
        let suspects = suspects(summaries, histories, plan, &shifts_ns);
        if suspects.is_empty() {
            return Overflow::default();
        }
        match in_first(folders, |folder| Overflow::of(&scan, &suspects, folder)) {
            Ok((mut overflow, added)) => {
                // Done last, so that the processes do not get lanes that do not exist.
                overflow.rows = targets(&added, &suspects, &mut plan.processes);
                overflow
            }
            Err(error) => {
                let mut overflow = Overflow::default();
                overflow.totals.failed = Some(error.to_string());
                overflow
            }
        }
    }

    /// Assigns each span to a lane. Also returns the index of the candidate that each added lane
    /// belongs to.
    fn of(
        scan: &ThreadScan<'_>,
        suspects: &[LaneCandidate],
        folder: &Path,
    ) -> io::Result<(Overflow, Vec<u32>)> {
        let numbered = (0..).zip(suspects);
        let places = numbered
            .flat_map(|(row, suspect)| suspect.places.iter().map(move |place| (*place, row)));
        let events = lane_events(scan, &places.collect(), folder)?;
        let outcasts = outcasts(&events, folder)?;
        let mut spread = LaneAssignment::new(folder, &outcasts);
        events.iter().try_for_each(|event| spread.take(*event))?;
        drop(events);
        let overflow = Overflow {
            moves: spread.moves.finish()?,
            totals: RowTotals {
                added: spread.added.len(),
                ..spread.totals
            },
            ..Overflow::default()
        };
        Ok((overflow, spread.added))
    }

    /// Returns the args of the end of a span that is written as a complete one.
    pub(crate) fn end_args<'a>(&self, begin: EventRef, sources: &[Source<'a>]) -> &'a [u8] {
        let found = find(&self.moves, begin);
        found.map_or(&[], |found| found.end_args.text(sources))
    }

    /// Returns the lanes and forms of the events of one chunk.
    pub(crate) fn of_chunk<'a>(&'a self, number: usize, sources: &'a [Source<'a>]) -> Moved<'a> {
        Moved {
            moves: OfChunk::new(&self.moves, number),
            overflow: self,
            sources,
        }
    }
}

/// Finds the spans that leave their threads' own lanes.
fn outcasts(events: &[LaneEvent], folder: &Path) -> io::Result<Sorted<OutcastRange>> {
    let mut finder = OutcastFinder::new(folder);
    for row in events.chunk_by(|one, next| one.row == next.row) {
        let span = |event: &LaneEvent| {
            let is_span = matches!(event.kind, LaneEventKind::Complete | LaneEventKind::Begin);
            is_span.then_some((event.start, event.end))
        };
        finder.add_thread(row.iter().map(span))?;
    }
    finder.finish()
}

/// Lane and form in which the next event is written.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shown<'a> {
    /// Number of the lane to which it moves.
    pub(crate) row: Option<u32>,
    pub(crate) target: Option<&'a Target>,
    pub(crate) form: Form,
    /// Args of the end of a complete span.
    end_args: &'a [u8],
}

impl Shown<'_> {
    /// Calls `found` with the event in the form in which it is written.
    #[inline]
    pub(crate) fn with<R>(&self, event: &Event<'_>, found: impl FnOnce(&Event<'_>) -> R) -> R {
        match self.form {
            Form::Whole => as_whole(event, self.end_args, found),
            Form::Recorded | Form::Omitted => found(event),
        }
    }
}

/// The events of a chunk that move. They must be queried in order.
pub(crate) struct Moved<'a> {
    moves: OfChunk<'a, Move>,
    overflow: &'a Overflow,
    sources: &'a [Source<'a>],
}

impl<'a> Moved<'a> {
    /// Returns true if no further event moves.
    pub(crate) fn is_empty(&self) -> bool {
        self.moves.is_empty()
    }

    /// Returns the lane and form of the next event.
    #[inline]
    pub(crate) fn next(&mut self) -> Shown<'a> {
        let Some(moved) = self.moves.next() else {
            return Shown::default();
        };
        let row = moved.row();
        let index = row.and_then(|row| usize::try_from(row).ok());
        Shown {
            row,
            target: index.and_then(|row| self.overflow.rows.get(row)),
            form: moved.form,
            end_args: moved.end_args.text(self.sources),
        }
    }
}
