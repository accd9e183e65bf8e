//! Sorts more records than memory shall hold: sorted runs of them lie in temporary files without a name, which vanish with the
//! process however it ends.

mod reader;
mod record;
mod sorted;

pub use reader::Reader;
pub use record::{Record, long_at, word_at};
pub use sorted::Sorted;

use crate::temporary::in_first;
use rayon::slice::ParallelSliceMut;
use sorted::{BATCH, RunWriter};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of records in memory before they are sorted and written.
const BUFFER_BYTES: usize = 4 << 20;
/// So many records are sorted by all workers. Of fewer a caller may hold a lock that other tasks of the workers take: a worker that waits for its part of a sort does such tasks.
const PARALLEL: usize = 1 << 20;
/// Runs of one size before they become one.
const RUNS: usize = 32;
/// Most bytes of records that are read ahead of all runs that become one, as far as a few of each are not more.
const MERGED_BYTES: usize = 512 << 10;
const LEAST: u64 = 16;

/// Takes records in any order.
pub struct Sorter<'f, R> {
    /// Where its files are: in the first of these that takes one.
    folders: Vec<&'f Path>,
    buffer: Vec<R>,
    capacity: usize,
    /// Sorted runs, each with how often its records were merged: the largest first.
    runs: Vec<(u32, Sorted<R>)>,
}

impl<'f, R: Record + Send> Sorter<'f, R> {
    /// One whose files are in `folder`, and that holds at most 4 MiB of records.
    pub fn new(folder: &'f Path) -> Sorter<'f, R> {
        Sorter::with_capacity(vec![folder], BUFFER_BYTES / R::BYTES)
    }

    /// One whose files are in `folder`, and that holds at most `bytes` of records.
    pub fn with_memory(folder: &'f Path, bytes: usize) -> Sorter<'f, R> {
        Sorter::with_capacity(vec![folder], (bytes / R::BYTES).max(2))
    }

    /// One whose files are in any of `folders`, and that holds at most `bytes` of records.
    pub fn in_any(folders: &'f [PathBuf], bytes: usize) -> Sorter<'f, R> {
        let folders = folders.iter().map(PathBuf::as_path).collect();
        Sorter::with_capacity(folders, (bytes / R::BYTES).max(2))
    }

    fn with_capacity(folders: Vec<&'f Path>, capacity: usize) -> Sorter<'f, R> {
        Sorter {
            folders,
            buffer: Vec::new(),
            capacity,
            runs: Vec::new(),
        }
    }

    /// Takes a record.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub fn push(&mut self, record: R) -> io::Result<()> {
        if self.buffer.len() == self.capacity {
            self.spill()?;
        }
        self.buffer.push(record);
        Ok(())
    }

    /// Writes what is in memory as a run.
    fn spill(&mut self) -> io::Result<()> {
        sort(&mut self.buffer);
        let run = in_first(&self.folders, |folder| write(&self.buffer, folder));
        self.buffer.clear();
        self.add(run?)
    }

    /// Returns true if nothing was taken.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.runs.is_empty()
    }

    /// Adds a run.
    fn add(&mut self, run: Sorted<R>) -> io::Result<()> {
        self.runs.push((0, run));
        while let Some(&(merged, _)) = self.runs.last() {
            let first = self.runs.partition_point(|run| run.0 > merged);
            if self.runs.len() - first < RUNS {
                break;
            }
            let runs: Vec<Sorted<R>> = self.runs.drain(first..).map(|(_, run)| run).collect();
            let run = in_first(&self.folders, |folder| merge(&runs, folder))?;
            self.runs.push((merged + 1, run));
        }
        Ok(())
    }

    /// All records in their order.
    ///
    /// # Errors
    /// If a temporary file cannot be written or read.
    pub fn finish(mut self) -> io::Result<Sorted<R>> {
        if self.runs.is_empty() {
            sort(&mut self.buffer);
            self.buffer.shrink_to_fit();
            return Ok(Sorted::Memory(self.buffer));
        }
        if !self.buffer.is_empty() {
            self.spill()?;
        }
        self.buffer = Vec::new();
        let runs: Vec<Sorted<R>> = self.runs.into_iter().map(|(_, run)| run).collect();
        in_first(&self.folders, |folder| merge(&runs, folder))
    }
}

fn sort<R: Record + Send>(records: &mut Vec<R>) {
    match records.len() < PARALLEL {
        true => records.sort_unstable(),
        false => records.par_sort_unstable(),
    }
    records.dedup_by(|next, record| record.join(next));
}

/// Makes a run of records that are in order.
fn write<R: Record>(records: &[R], folder: &Path) -> io::Result<Sorted<R>> {
    let mut writer = RunWriter::new(folder)?;
    records.iter().try_for_each(|record| writer.push(record))?;
    writer.finish()
}

/// Makes one run of several. Records that are to be one are joined.
fn merge<R: Record>(runs: &[Sorted<R>], folder: &Path) -> io::Result<Sorted<R>> {
    let most = MERGED_BYTES / R::BYTES / runs.len();
    let most = (most as u64).clamp(LEAST, BATCH);
    let readers = runs.iter().map(|run| Reader::new(run, 0..run.len(), most));
    let mut readers: Vec<Reader<'_, R>> = readers.collect();
    // The first record of each run that has any left.
    let mut heads = BinaryHeap::new();
    for (number, reader) in readers.iter_mut().enumerate() {
        heads.extend(reader.next()?.map(|record| Reverse((record, number))));
    }
    let (mut writer, mut last) = (RunWriter::new(folder)?, None::<R>);
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((record, number)) = *head;
        match readers[number].next()? {
            Some(next) => head.0.0 = next,
            None => drop(PeekMut::pop(head)),
        }
        if !last.as_mut().is_some_and(|last| last.join(&record))
            && let Some(whole) = last.replace(record)
        {
            writer.push(&whole)?;
        }
    }
    last.iter().try_for_each(|whole| writer.push(whole))?;
    writer.finish()
}

#[cfg(test)]
mod tests;
