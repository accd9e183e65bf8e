//! All events in the order of their times, for a trace that is sorted as a whole: where each stands, and where it goes. No text is kept: the
//! lines are read once more in that order.

mod entry;
mod notes;
mod scribe;

pub(crate) use scribe::Scribe;

use crate::Error;
use crate::event::line::{Event, parse, parse_again, parse_canonical};
use crate::event::patch::Target;
use crate::pass::chunk::Chunk;
use crate::store::sorter::{Pieces, Sorted, Sorter, Strips};
use crate::write::copy::Job;
use entry::Entry;
use notes::entries;
use rayon::prelude::*;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// Events of a piece that is read from a file.
const PIECE: u64 = 8192;
/// Chunks of which everything found is in memory at once, at most.
const AT_ONCE: usize = 16;

/// The events of a trace in their order.
pub(crate) struct Timeline<'a> {
    order: Order,
    targets: Targets<'a>,
    /// Where the temporary files are.
    folder: PathBuf,
    /// Length of the chunks that they are in.
    bytes: u64,
}

/// All of them, in memory as far as it goes.
enum Order {
    Memory(Pieces<Entry>),
    File(Sorted<Entry>),
}

impl<'a> Timeline<'a> {
    /// Sorts in `memory` bytes; what is too much for them goes to files in `folder`.
    pub(crate) fn of(job: &Job<'a>, memory: usize, folder: &Path) -> io::Result<Timeline<'a>> {
        let targets = Targets::of(job);
        let bytes: u64 = job.chunks.iter().map(Chunk::len).sum();
        job.progress.expect_rest(bytes.saturating_mul(2));
        let capacity = memory / size_of::<Entry>();
        let (mut sorter, mut strips) = (Sorter::new(folder), Strips::default());
        let chunks: Vec<(u32, &Chunk)> = (0..).zip(job.chunks).collect();
        for some in chunks.chunks(AT_ONCE) {
            let of_chunk = |(number, chunk): &(u32, &Chunk)| entries(job, &targets, *number, chunk);
            let found: Vec<io::Result<Vec<Entry>>> = some.par_iter().map(of_chunk).collect();
            for entries in found {
                let entries = entries?;
                if !strips.is_empty() && strips.len() + entries.len() > capacity {
                    sorter.add(spill(&mut strips, folder)?)?;
                }
                strips.push(entries);
            }
            let done = some.iter().map(|(_, chunk)| chunk.len()).sum();
            job.progress.add(done, 0);
        }
        let order = if sorter.is_empty() {
            Order::Memory(strips.finish())
        } else {
            sorter.add(spill(&mut strips, folder)?)?;
            Order::File(sorter.finish()?)
        };
        Ok(Timeline {
            order,
            targets,
            folder: folder.to_owned(),
            bytes,
        })
    }

    /// How many pieces of them there are, of which a worker takes one at a time.
    pub(crate) fn pieces(&self) -> usize {
        match &self.order {
            Order::Memory(pieces) => pieces.len(),
            Order::File(all) => usize::try_from(all.len().div_ceil(PIECE)).unwrap_or(usize::MAX),
        }
    }

    /// A piece's share of the chunks; all of them together have their whole length.
    pub(crate) fn bytes_of_piece(&self, number: usize) -> u64 {
        let (pieces, bytes) = (self.pieces() as u128, u128::from(self.bytes));
        let until = |piece: usize| bytes * piece as u128 / pieces.max(1);
        u64::try_from(until(number + 1) - until(number)).unwrap_or(0)
    }

    /// The events of one piece. An error says in itself where the file is.
    fn piece(&self, number: usize) -> io::Result<Vec<Entry>> {
        let all = match &self.order {
            Order::Memory(pieces) => return Ok(pieces.piece(number)),
            Order::File(all) => all,
        };
        let start = number as u64 * PIECE;
        let range = start..all.len().min(start + PIECE);
        let mut entries = Vec::new();
        let named = |error| io::Error::other(Error::of_temporary(&self.folder, error));
        all.read(range, &mut entries).map_err(named)?;
        Ok(entries)
    }
}

/// Makes a run of what is in memory, which is empty then.
fn spill(strips: &mut Strips<Entry>, folder: &Path) -> io::Result<Sorted<Entry>> {
    std::mem::take(strips).finish().write(folder)
}

/// A line that stood for an event before, in the way in which its chunk is read.
fn again<'a>(chunk: &Chunk, line: &'a [u8], start: usize) -> Option<Event<'a>> {
    let is_trusted = || {
        let part = chunk.parts.partition_point(|part| part.end <= start);
        chunk.parts.get(part).is_some_and(|part| part.trusted)
    };
    let quick = match chunk.canonical || is_trusted() {
        true => parse_canonical(line),
        false if chunk.plain => parse_again(line),
        false => None,
    };
    quick.or_else(|| parse(line).ok())
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Where events go, by number.
struct Targets<'a> {
    list: Vec<&'a Target>,
    /// For each recording.
    of_threads: Vec<HashMap<(i64, i64), u32>>,
    /// The first of the rows beside threads.
    first_row: u32,
}

impl<'a> Targets<'a> {
    fn of(job: &Job<'a>) -> Targets<'a> {
        let mut list = Vec::new();
        let mut numbers = 0..;
        let mut of_thread = |(thread, target): (&(i64, i64), &'a Target)| {
            list.push(target);
            (*thread, numbers.next().unwrap_or(u32::MAX))
        };
        let of_recording =
            |targets: &'a HashMap<(i64, i64), Target>| targets.iter().map(&mut of_thread).collect();
        let of_threads = job.plan.targets.iter().map(of_recording).collect();
        let first_row = u32::try_from(list.len()).unwrap_or(u32::MAX);
        list.extend(job.overflow.rows());
        Targets {
            list,
            of_threads,
            first_row,
        }
    }
}
