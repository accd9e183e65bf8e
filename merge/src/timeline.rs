//! All events in the order of their times, for a trace that is sorted as a whole: where each stands, and where it goes. No text is kept: the
//! lines are read once more in that order.

use crate::Error;
use crate::copy::Job;
use crate::indexer::is_left_out;
use crate::line::{Event, parse, parse_again, parse_canonical};
use crate::marks::At;
use crate::patch::Target;
use crate::sorter::{Record, Sorted, Sorter, long_at, word_at};
use crate::source::Chunk;
use crate::window::Lies;
use rayon::prelude::*;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// Events of a piece.
const PIECE: u64 = 8192;
/// Chunks of which everything found is in memory at once, at most.
const AT_ONCE: usize = 16;

/// An event of the trace. Those of one time keep the order in which an unsorted trace has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// When, in the trace; metadata comes first.
    ts_ns: i64,
    /// Which chunk it is in, and which of its events it is.
    at: At,
    /// Where its line begins in the chunk's source.
    start: u64,
    len: u32,
    /// Which of the targets.
    target: u32,
    /// Whether it began before the window.
    is_cut: bool,
}

/// The events of a trace in their order.
pub(crate) struct Timeline<'a> {
    entries: Sorted<Entry>,
    targets: Targets<'a>,
    /// Where the temporary files are.
    folder: PathBuf,
    /// Length of the chunks that they are in.
    bytes: u64,
}

/// An event, and what to write of it.
pub(crate) struct Shown<'a> {
    pub(crate) event: Event<'a>,
    pub(crate) target: &'a Target,
    /// Which of the sources it is in.
    pub(crate) source: usize,
    pub(crate) is_cut: bool,
}

impl<'a> Timeline<'a> {
    /// Sorts in `memory` bytes; what is too much for them goes to files in `folder`.
    pub(crate) fn of(job: &Job<'a>, memory: usize, folder: &Path) -> io::Result<Timeline<'a>> {
        let targets = Targets::of(job);
        let bytes: u64 = job.chunks.iter().map(Chunk::len).sum();
        job.progress.expect_rest(bytes.saturating_mul(2));
        let mut sorter = Sorter::within(folder, memory);
        let chunks: Vec<(u32, &Chunk)> = (0..).zip(job.chunks).collect();
        for some in chunks.chunks((2 * rayon::current_num_threads()).min(AT_ONCE)) {
            let of_chunk = |(number, chunk): &(u32, &Chunk)| entries(job, &targets, *number, chunk);
            let found: Vec<io::Result<Vec<Entry>>> = some.par_iter().map(of_chunk).collect();
            for entries in found {
                entries?
                    .into_iter()
                    .try_for_each(|entry| sorter.push(entry))?;
            }
            let done = some.iter().map(|(_, chunk)| chunk.len()).sum();
            job.progress.add(done, 0);
        }
        Ok(Timeline {
            entries: sorter.finish()?,
            targets,
            folder: folder.to_owned(),
            bytes,
        })
    }

    /// How many pieces of them there are, of which a worker takes one at a time.
    pub(crate) fn pieces(&self) -> usize {
        usize::try_from(self.entries.len().div_ceil(PIECE)).unwrap_or(usize::MAX)
    }

    /// A piece's share of the chunks; all of them together have their whole length.
    pub(crate) fn bytes_of_piece(&self, number: usize) -> u64 {
        let (pieces, bytes) = (self.pieces() as u128, u128::from(self.bytes));
        let until = |piece: usize| bytes * piece as u128 / pieces.max(1);
        u64::try_from(until(number + 1) - until(number)).unwrap_or(0)
    }

    /// The events of one piece. An error says in itself where the file is.
    pub(crate) fn piece(&self, number: usize) -> io::Result<Vec<Entry>> {
        let start = number as u64 * PIECE;
        let range = start..self.entries.len().min(start + PIECE);
        let mut entries = Vec::new();
        let named = |error| io::Error::other(Error::of_temporary(&self.folder, error));
        self.entries.read(range, &mut entries).map_err(named)?;
        Ok(entries)
    }

    /// Reads the line of an event again.
    ///
    /// # Errors
    /// If it is not there any more.
    pub(crate) fn shown(&self, job: &Job<'a>, entry: &Entry) -> io::Result<Shown<'a>> {
        let changed = || {
            let chunk = job.chunks.get(index(entry.at.chunk));
            let source = chunk.map(|chunk| &job.sources[chunk.source]);
            let path = source.map(|source| source.path.to_owned());
            let offset = source.map_or(0, |source| source.file_offset(entry.start));
            let path = path.unwrap_or_default();
            io::Error::other(Error::Changed { path, offset })
        };
        self.again(job, entry).ok_or_else(changed)
    }

    fn again(&self, job: &Job<'a>, entry: &Entry) -> Option<Shown<'a>> {
        let chunk = job.chunks.get(index(entry.at.chunk))?;
        let source = &job.sources[chunk.source];
        let start = usize::try_from(entry.start).ok()?;
        let line = source.bytes.get(start..start + index(entry.len))?;
        Some(Shown {
            event: chunk.warped(again(chunk, line, start)?),
            target: self.targets.list.get(index(entry.target))?,
            source: chunk.source,
            is_cut: entry.is_cut,
        })
    }
}

/// A line that stood for an event before, in the way in which its chunk is read.
fn again<'a>(chunk: &Chunk, line: &'a [u8], start: usize) -> Option<Event<'a>> {
    let part = chunk.parts.partition_point(|part| part.end <= start);
    let quick = match chunk.parts.get(part).is_some_and(|part| part.trusted) {
        true => parse_canonical(line),
        false if chunk.plain => parse_again(line),
        false => None,
    };
    quick.or_else(|| parse(line).ok())
}

fn entries(
    job: &Job<'_>,
    targets: &Targets<'_>,
    number: u32,
    chunk: &Chunk,
) -> io::Result<Vec<Entry>> {
    let source = &job.sources[chunk.source];
    let shift_ns = job.plan.shifts_ns[source.recording];
    let of_threads = &targets.of_threads[source.recording];
    let mut moved = job.overflow.of_chunk(index(number))?;
    let mut found = Vec::new();
    chunk.each(source.bytes, |nth, lies, event| {
        let at = At { chunk: number, nth };
        let row = moved.next_row();
        let own = of_threads.get(&(event.pid, event.tid));
        let (Some(own), false) = (own, is_left_out(event) || lies == Lies::Outside) else {
            return;
        };
        let ts_ns = match event.is_metadata() {
            true => i64::MIN,
            false => event.ts_ns + shift_ns,
        };
        found.push(Entry {
            ts_ns,
            at,
            start: offset(source.bytes, event.line) as u64,
            len: u32::try_from(event.line.len()).unwrap_or(0),
            target: row.map_or(*own, |row| targets.first_row + row),
            is_cut: lies == Lies::Across,
        });
    });
    Ok(found)
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Where a line of `bytes` begins in them.
fn offset(bytes: &[u8], line: &[u8]) -> usize {
    line.as_ptr().addr() - bytes.as_ptr().addr()
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

impl Record for Entry {
    const BYTES: usize = 33;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.ts_ns.to_le_bytes());
        out.extend_from_slice(&self.start.to_le_bytes());
        for word in [self.at.chunk, self.at.nth, self.len, self.target] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.push(u8::from(self.is_cut));
    }

    fn load(bytes: &[u8]) -> Self {
        Entry {
            ts_ns: long_at(bytes, 0).cast_signed(),
            start: long_at(bytes, 8),
            at: At {
                chunk: word_at(bytes, 16),
                nth: word_at(bytes, 20),
            },
            len: word_at(bytes, 24),
            target: word_at(bytes, 28),
            is_cut: bytes[32] == 1,
        }
    }
}
