//! The events of a trace in the order of their times.

use super::notes::entries;
use super::ordered_event::OrderedEvent;
use super::targets::Targets;
use crate::Error;
use crate::pass::chunk::Chunk;
use crate::pass::visit::{AtOnce, visit};
use crate::store::sorter::{Sorted, Sorter};
use crate::write::job::Job;
use std::io;
use std::path::{Path, PathBuf};

/// Events of a piece.
const PIECE: u64 = 8192;

/// The events of a trace in their order.
pub(crate) struct TimeOrder<'a> {
    /// In memory as far as it goes.
    order: Sorted<OrderedEvent>,
    pub(super) targets: Targets<'a>,
    /// Where the temporary files are.
    folder: PathBuf,
    /// Length of the chunks that they are in.
    bytes: u64,
}

impl<'a> TimeOrder<'a> {
    /// Sorts in `memory` bytes; what is too much for them goes to files in `folder`.
    pub(crate) fn of(job: &Job<'a>, memory: usize, folder: &Path) -> io::Result<TimeOrder<'a>> {
        let targets = Targets::of(job);
        let bytes: u64 = job.chunks.iter().map(Chunk::len).sum();
        job.progress.expect_rest(bytes.saturating_mul(2));
        let mut sorter = Sorter::with_memory(folder, memory);
        let look = |number: usize| entries(job, &targets, number, &job.chunks[number]);
        let mut done = job.chunks.iter().map(Chunk::len);
        visit(0..job.chunks.len(), AtOnce::Few, look, |entries| {
            entries?
                .into_iter()
                .try_for_each(|entry| sorter.push(entry))?;
            job.progress.add(done.next().unwrap_or(0), 0);
            Ok::<(), io::Error>(())
        })?;
        let order = sorter.finish()?;
        Ok(TimeOrder {
            order,
            targets,
            folder: folder.to_owned(),
            bytes,
        })
    }

    /// How many pieces of them there are, of which a worker takes one at a time.
    pub(crate) fn pieces(&self) -> usize {
        usize::try_from(self.order.len().div_ceil(PIECE)).unwrap_or(usize::MAX)
    }

    /// A piece's share of the chunks; all of them together have their whole length.
    pub(crate) fn bytes_of_piece(&self, number: usize) -> u64 {
        let (pieces, bytes) = (self.pieces() as u128, u128::from(self.bytes));
        let until = |piece: usize| bytes * piece as u128 / pieces.max(1);
        u64::try_from(until(number + 1) - until(number)).unwrap_or(0)
    }

    /// The events of one piece. An error says in itself where the file is.
    pub(super) fn piece(&self, number: usize) -> io::Result<Vec<OrderedEvent>> {
        let start = number as u64 * PIECE;
        let range = start..self.order.len().min(start + PIECE);
        let mut entries = Vec::new();
        let named = |error| io::Error::other(Error::of_temporary(&self.folder, error));
        self.order.read(range, &mut entries).map_err(named)?;
        Ok(entries)
    }
}
