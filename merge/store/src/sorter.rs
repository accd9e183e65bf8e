//! Sorts more records than memory shall hold: sorted runs of them lie in temporary files without a name, which vanish with the
//! process however it ends.

mod reader;
mod record;
mod runs;
mod sorted;

pub use record::{Record, long_at, word_at};
pub use runs::{Ascending, Runs};
pub use sorted::Sorted;

use crate::temporary::in_first;
use rayon::slice::ParallelSliceMut;
use sorted::RunWriter;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of records in memory before they are sorted and written.
const BUFFER_BYTES: usize = 4 << 20;
/// So many records are sorted by all workers. Of fewer a caller may hold a lock that other tasks of the workers take: a worker that waits for its part of a sort does such tasks.
const PARALLEL: usize = 1 << 20;
/// Runs of one size before they become one.
const RUNS: usize = 32;

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
        let run = run(&mut self.buffer, &self.folders)?;
        self.add(run)
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
            return Ok(Sorted::Memory(self.rest()));
        }
        if !self.buffer.is_empty() {
            self.spill()?;
        }
        self.buffer = Vec::new();
        let runs: Vec<Sorted<R>> = self.runs.into_iter().map(|(_, run)| run).collect();
        in_first(&self.folders, |folder| merge(&runs, folder))
    }

    /// The same, to be put in order while they are read: they are written once less, and each reader takes longer. What is in memory stays there.
    pub fn runs(mut self) -> Runs<R> {
        let rest = Sorted::Memory(self.rest());
        let runs = self.runs.into_iter().map(|(_, run)| run);
        Runs(runs.chain([rest]).collect())
    }

    /// Takes what is in memory, in its order.
    fn rest(&mut self) -> Vec<R> {
        let mut rest = std::mem::take(&mut self.buffer);
        sort(&mut rest);
        rest.shrink_to_fit();
        rest
    }
}

/// Makes a run of records, in the first of the folders that takes it, and leaves none in memory.
fn run<R: Record + Send>(
    records: &mut Vec<R>,
    folders: &[impl AsRef<Path>],
) -> io::Result<Sorted<R>> {
    sort(records);
    let run = in_first(folders, |folder| write(records, folder));
    records.clear();
    run
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

/// Makes one run of several.
fn merge<R: Record>(runs: &[Sorted<R>], folder: &Path) -> io::Result<Sorted<R>> {
    let mut records = Ascending::new(runs)?;
    let mut writer = RunWriter::new(folder)?;
    while let Some(record) = records.next()? {
        writer.push(&record)?;
    }
    writer.finish()
}

#[cfg(test)]
mod tests;
