//! Spans that overlap others of their thread without nesting go to rows beside it: viewers would drop them. What belongs to a span
//! goes with it: the spans in it, its end, instants, flows.

use crate::base::progress::Progress;
use crate::event::patch::Target;
use crate::fragment::temp_folder::in_first;
use crate::identity::plan::Plan;
use crate::lanes::assign::{LaneAssignment, targets};
use crate::lanes::candidates::{LaneCandidate, suspects};
use crate::lanes::row_move::Move;
use crate::pass::by_chunk::{ByChunk, OfChunk};
use crate::pass::history::Histories;
use crate::pass::summary::ChunkSummary;
use crate::pass::visit::ChunkView;
use crate::span::lane_events::lane_events;
use crate::span::thread_scan::ThreadScan;
use std::io;
use std::path::{Path, PathBuf};

/// The events that move, and where to.
#[derive(Default)]
pub(crate) struct Overflow {
    moves: ByChunk<Move>,
    rows: Vec<Target>,
    /// The spans that move, and those for which there was no row.
    pub(crate) spans: u64,
    pub(crate) left: u64,
    /// Why nothing moves, if something should.
    pub(crate) failure: Option<String>,
}

impl Overflow {
    /// Looks for such spans and gives their rows ids, which `plan` then knows. What is too much for memory goes to files in the first of
    /// `folders` that takes them. If none does, all spans stay where they are: a trace in which a viewer drops some is worth more than none.
    pub(crate) fn find(
        ChunkView { sources, chunks }: ChunkView<'_>,
        summaries: &[ChunkSummary],
        histories: Histories,
        plan: &mut Plan,
        folders: &[PathBuf],
        progress: &Progress,
    ) -> Overflow {
        let shifts_ns = plan.shifts_ns.clone();
        let scan = ThreadScan {
            sources,
            chunks,
            shifts_ns: &shifts_ns,
            progress,
        };
        let suspects = suspects(&scan, summaries, histories, plan);
        if suspects.is_empty() {
            return Overflow::default();
        }
        match in_first(folders, |folder| Overflow::of(&scan, &suspects, folder)) {
            Ok((_, (mut overflow, added))) => {
                // Last, so that the processes know of no row that is not there.
                overflow.rows = targets(&added, &suspects, &mut plan.identities.processes);
                overflow
            }
            Err(error) => Overflow {
                failure: Some(error.to_string()),
                ..Overflow::default()
            },
        }
    }

    /// Gives each span a row; also tells beside which of the suspects each row is.
    fn of(
        scan: &ThreadScan<'_>,
        suspects: &[LaneCandidate],
        folder: &Path,
    ) -> io::Result<(Overflow, Vec<u32>)> {
        let numbered = (0..).zip(suspects);
        let places = numbered
            .flat_map(|(row, suspect)| suspect.places.iter().map(move |place| (*place, row)));
        let events = lane_events(scan, &places.collect(), folder)?;
        let mut spread = LaneAssignment::new(folder);
        events.each(|event| spread.take(event))?;
        drop(events);
        let moves = spread.moves.finish()?;
        let overflow = Overflow {
            moves: ByChunk::new(moves, scan.chunks.len(), folder)?,
            rows: Vec::new(),
            spans: spread.spans,
            left: spread.left,
            failure: None,
        };
        Ok((overflow, spread.added))
    }

    /// All rows, by their number.
    pub(crate) fn rows(&self) -> &[Target] {
        &self.rows
    }

    /// The events of one chunk that move. An error says in itself where the file is.
    pub(crate) fn of_chunk(&self, number: usize) -> io::Result<Moved<'_>> {
        Ok(Moved {
            moves: self.moves.of_chunk(number)?,
            rows: &self.rows,
        })
    }
}

/// The events of a chunk that move, asked for in their order.
pub(crate) struct Moved<'a> {
    moves: OfChunk<Move>,
    rows: &'a [Target],
}

impl<'a> Moved<'a> {
    /// Whether no further event moves.
    pub(crate) fn is_empty(&self) -> bool {
        self.moves.is_empty()
    }

    /// Where the next event goes, if it moves.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&'a Target> {
        let row = self.next_row()?;
        self.rows.get(usize::try_from(row).ok()?)
    }

    /// The same by the row's number.
    #[inline]
    pub(crate) fn next_row(&mut self) -> Option<u32> {
        Some(self.moves.next()?.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::event_ref::EventRef;
    use crate::store::sorter::{Record, Sorted};

    #[test]
    fn moves_are_found_by_their_chunk_and_number() {
        let one = |chunk, nth, row| Move {
            at: EventRef { chunk, nth },
            row,
        };
        let mut moves = vec![one(0, 3, 1), one(2, 0, 0), one(2, 1, 1), one(2, 9, 0)];
        for one in &mut moves {
            let mut bytes = Vec::new();
            one.store(&mut bytes);
            assert_eq!(bytes.len(), Move::BYTES);
            *one = Move::load(&bytes);
        }
        let target = |tid: u32| Target {
            pid: 1.into(),
            tid: tid.into(),
            ordinal: 0,
        };
        let moves = ByChunk::new(Sorted::Memory(moves), 3, Path::new("")).unwrap();
        let overflow = Overflow {
            moves,
            rows: vec![target(5), target(6)],
            ..Overflow::default()
        };
        let tids = |chunk: usize| {
            let mut moved = overflow.of_chunk(chunk).unwrap();
            let next = |_| moved.next().map_or(b' ', |target| target.tid[0]);
            String::from_utf8((0..11).map(next).collect()).unwrap()
        };
        let expected = ["   6       ", "           ", "56       5 ", "           "];
        assert_eq!([0, 1, 2, 3].map(tids), expected);
    }
}
