//! Sorts more records than memory shall hold: sorted runs of them lie in temporary files without a name, which vanish with the
//! process however it ends.

use crate::records::{RecordFile, Records};
use crate::temporary::in_first;
use rayon::slice::ParallelSliceMut;
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
/// Records that are written at a time while runs become one.
const BATCH: usize = 1024;

/// Something that has an order. In a temporary file it is as it is in memory.
pub trait Record: Ord + Copy + Send + 'static {
    /// Adds the next record to this one and returns true if both are to be one. This must not change the order.
    fn join(&mut self, _next: &Self) -> bool {
        false
    }
}

/// Records in their order: in memory while they are few, else in a temporary file without a name.
pub type Sorted<R> = Records<R>;

/// Takes records in any order.
pub struct Sorter<'f, R> {
    /// Where its files are: in the first of these that takes one.
    folders: Vec<&'f Path>,
    buffer: Vec<R>,
    capacity: usize,
    /// Sorted runs, each with how often its records were merged: the largest first.
    runs: Vec<(u32, Sorted<R>)>,
}

impl<'f, R: Record> Sorter<'f, R> {
    /// One whose files are in `folder`, and that holds at most 4 MiB of records.
    pub fn new(folder: &'f Path) -> Sorter<'f, R> {
        Sorter::with_capacity(vec![folder], BUFFER_BYTES / size_of::<R>())
    }

    /// One whose files are in `folder`, and that holds at most `bytes` of records.
    pub fn with_memory(folder: &'f Path, bytes: usize) -> Sorter<'f, R> {
        Sorter::with_capacity(vec![folder], (bytes / size_of::<R>()).max(2))
    }

    /// One whose files are in any of `folders`, and that holds at most `bytes` of records.
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

    /// Takes several records.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub fn extend(&mut self, records: impl IntoIterator<Item = R>) -> io::Result<()> {
        let mut records = records.into_iter();
        records.try_for_each(|record| self.push(record))
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
    /// If a temporary file cannot be written, or neither mapped nor read.
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

fn sort<R: Record>(records: &mut Vec<R>) {
    match records.len() < PARALLEL {
        true => records.sort_unstable(),
        false => records.par_sort_unstable(),
    }
    records.dedup_by(|next, record| record.join(next));
}

/// Makes a run of records that are in order.
fn write<R: Record>(records: &[R], folder: &Path) -> io::Result<Sorted<R>> {
    let mut file = RecordFile::new(folder)?;
    file.append(records)?;
    file.finish()
}

/// Makes one run of several. Records that are to be one are joined.
fn merge<R: Record>(runs: &[Sorted<R>], folder: &Path) -> io::Result<Sorted<R>> {
    let mut rests: Vec<_> = runs.iter().map(|run| run.iter().copied()).collect();
    // The first record of each run that has any left.
    let mut heads = BinaryHeap::new();
    for (number, rest) in rests.iter_mut().enumerate() {
        heads.extend(rest.next().map(|record| Reverse((record, number))));
    }
    let mut file = RecordFile::new(folder)?;
    let mut batch: Vec<R> = Vec::with_capacity(BATCH);
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((record, number)) = *head;
        match rests[number].next() {
            Some(next) => head.0.0 = next,
            None => drop(PeekMut::pop(head)),
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
