//! Sorts more records than may be held in memory. Sorted runs of them are in temporary files without a name, which vanish with the process, however it ends.

use crate::records::{RecordFile, Records};
use crate::temporary::try_folders;
use rayon::slice::ParallelSliceMut;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of records in memory before they are sorted and written.
const BUFFER_BYTES: usize = 4 << 20;
/// Minimum number of records to sort with all workers. Below it, one thread sorts, because the caller may hold a lock that other tasks need: a worker that
/// waits for its part of a parallel sort executes such tasks meanwhile.
const PARALLEL: usize = 1 << 20;
/// Number of runs of about the same size that are merged into one.
const RUNS: usize = 32;
/// Number of records written at a time while runs are merged.
const BATCH: usize = 1024;

/// A record to sort. Temporary files contain it as it is in memory.
pub trait Record: Ord + Copy + Send + 'static {
    /// Merges the next record into this one if both belong together, and returns true in that case. This must not change the order.
    fn join(&mut self, _next: &Self) -> bool {
        false
    }
}

/// Sorted records, in memory or in a temporary file without a name.
pub type Sorted<R> = Records<R>;

/// Sorts records that are added in any order.
pub struct Sorter<'f, R> {
    /// Candidates for the folder of temporary files. The first one that accepts a file is used.
    folders: Vec<&'f Path>,
    buffer: Vec<R>,
    capacity: usize,
    /// Sorted runs, each with the number of times its records were merged. The largest ones come first.
    runs: Vec<(u32, Sorted<R>)>,
}

impl<'f, R: Record> Sorter<'f, R> {
    /// Creates a sorter with temporary files in `folder`. It buffers at most 4 MiB of records.
    pub fn new(folder: &'f Path) -> Sorter<'f, R> {
        Sorter::with_capacity(vec![folder], BUFFER_BYTES / size_of::<R>())
    }

    /// Creates a sorter with temporary files in `folder`. It buffers at most `bytes` of records.
    pub fn with_memory(folder: &'f Path, bytes: usize) -> Sorter<'f, R> {
        Sorter::with_capacity(vec![folder], (bytes / size_of::<R>()).max(2))
    }

    /// Creates a sorter with temporary files in the first of `folders` that accepts them. It buffers at most `bytes` of records.
    pub fn in_any(folders: &'f [PathBuf], bytes: usize) -> Sorter<'f, R> {
        let folders = folders.iter().map(PathBuf::as_path).collect();
        Sorter::with_capacity(folders, (bytes / size_of::<R>()).max(2))
    }

    fn with_capacity(folders: Vec<&'f Path>, capacity: usize) -> Sorter<'f, R> {
        Sorter {
            folders,
            buffer: Vec::new(),
            capacity,
            runs: Vec::new(),
        }
    }

    /// Adds a record.
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

    /// Adds several records.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub fn extend(&mut self, records: impl IntoIterator<Item = R>) -> io::Result<()> {
        let mut records = records.into_iter();
        records.try_for_each(|record| self.push(record))
    }

    /// Sorts the buffered records, writes them to a temporary file as a run (a sorted list), and
    /// empties the buffer.
    fn spill(&mut self) -> io::Result<()> {
        sort(&mut self.buffer);
        let run = try_folders(&self.folders, |folder| write(&self.buffer, folder));
        self.buffer.clear();
        self.add_run(run?)
    }

    /// Returns true if no record has been added to the sorter.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.runs.is_empty()
    }

    /// Adds a run (a sorted list of records in a file). If there are then too many runs of one
    /// size, merges them into a larger one.
    fn add_run(&mut self, run: Sorted<R>) -> io::Result<()> {
        self.runs.push((0, run));
        while let Some(&(merged, _)) = self.runs.last() {
            let first = self.runs.partition_point(|run| run.0 > merged);
            if self.runs.len() - first < RUNS {
                break;
            }
            let runs: Vec<Sorted<R>> = self.runs.drain(first..).map(|(_, run)| run).collect();
            let run = try_folders(&self.folders, |folder| merge(&runs, folder))?;
            self.runs.push((merged + 1, run));
        }
        Ok(())
    }

    /// Returns all records in their order.
    ///
    /// # Errors
    /// If a temporary file cannot be written, or can neither be mapped nor read.
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
        try_folders(&self.folders, |folder| merge(&runs, folder))
    }
}

fn sort<R: Record>(records: &mut Vec<R>) {
    match records.len() < PARALLEL {
        true => records.sort_unstable(),
        false => records.par_sort_unstable(),
    }
    records.dedup_by(|next, record| record.join(next));
}

/// Writes sorted records as a run.
fn write<R: Record>(records: &[R], folder: &Path) -> io::Result<Sorted<R>> {
    let mut file = RecordFile::new(folder)?;
    file.append(records)?;
    file.finish()
}

/// Merges several runs into one. Records that belong together are joined.
fn merge<R: Record>(runs: &[Sorted<R>], folder: &Path) -> io::Result<Sorted<R>> {
    let mut sources: Vec<_> = runs.iter().map(|run| run.iter().copied()).collect();
    // The next record of each run that has any left.
    let mut heap = BinaryHeap::new();
    for (number, source) in sources.iter_mut().enumerate() {
        heap.extend(source.next().map(|record| Reverse((record, number))));
    }
    let mut file = RecordFile::new(folder)?;
    let mut batch: Vec<R> = Vec::with_capacity(BATCH);
    while let Some(mut least) = heap.peek_mut() {
        let Reverse((record, number)) = *least;
        match sources[number].next() {
            Some(next) => least.0.0 = next,
            None => drop(PeekMut::pop(least)),
        }
        if batch.last_mut().is_some_and(|last| last.join(&record)) {
            continue;
        }
        if batch.len() == BATCH {
            file.append(&batch)?;
            batch.clear();
        }
        batch.push(record);
    }
    file.append(&batch)?;
    file.finish()
}

#[cfg(test)]
mod tests;
