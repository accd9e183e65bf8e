//! Sorts more records than memory shall hold: sorted runs of them lie in temporary files without a name, which vanish with the
//! process however it ends.

mod log;
mod reader;
mod runs;
mod strips;

pub(crate) use log::Log;
pub(crate) use reader::Reader;
pub(crate) use runs::{Ascending, Runs};
pub(crate) use strips::{Pieces, Strips};

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of records in memory before they are sorted and written.
const BUFFER_BYTES: usize = 4 << 20;
/// Runs of one size before they become one.
const RUNS: usize = 32;
/// Records read or written at a time.
const BATCH: usize = 1024;

/// Something of a fixed size that has an order.
pub(crate) trait Record: Ord + Copy + Send {
    const BYTES: usize;
    fn store(&self, out: &mut Vec<u8>);
    fn load(bytes: &[u8]) -> Self;

    /// Takes in the one that comes next in the order, if the two are to be one; tells whether they are. The order must not change by it.
    fn join(&mut self, _next: &Self) -> bool {
        false
    }
}

/// The number of eight bytes at `at` in a stored record.
pub(crate) fn long_at(bytes: &[u8], at: usize) -> u64 {
    let long = bytes[at..].first_chunk().copied();
    long.map_or(0, u64::from_le_bytes)
}

/// The number of four bytes at `at` in a stored record.
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes[at..].first_chunk().copied();
    word.map_or(0, u32::from_le_bytes)
}

/// Takes records in any order.
pub(crate) struct Sorter<'f, R> {
    /// Where its files are: in the first of these that takes one.
    folders: Vec<&'f Path>,
    buffer: Vec<R>,
    /// Memory that was used before and is empty: new memory costs as much as sorting what it takes.
    spare: Vec<R>,
    capacity: usize,
    /// Sorted runs, each with how often its records were merged: the largest first.
    runs: Vec<(u32, Sorted<R>)>,
}

impl<'f, R: Record> Sorter<'f, R> {
    pub(crate) fn new(folder: &'f Path) -> Sorter<'f, R> {
        Sorter::with_capacity(vec![folder], BUFFER_BYTES / R::BYTES)
    }

    /// One whose files are in any of `folders`, and that holds at most `bytes` of records.
    pub(crate) fn in_any(folders: &'f [PathBuf], bytes: usize) -> Sorter<'f, R> {
        let folders = folders.iter().map(PathBuf::as_path).collect();
        Sorter::with_capacity(folders, (bytes / R::BYTES).max(2))
    }

    fn with_capacity(folders: Vec<&'f Path>, capacity: usize) -> Sorter<'f, R> {
        Sorter {
            folders,
            buffer: Vec::new(),
            spare: Vec::new(),
            capacity,
            runs: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, record: R) -> io::Result<()> {
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

    /// Takes all records out of memory if it has no room for so many more, to be sorted elsewhere and given back as a run.
    pub(crate) fn make_room(&mut self, more: usize) -> Option<Vec<R>> {
        let is_full = !self.buffer.is_empty() && self.buffer.len() + more > self.capacity;
        is_full.then(|| std::mem::replace(&mut self.buffer, std::mem::take(&mut self.spare)))
    }

    /// Takes back the memory of records that were put aside; there are none left in it.
    pub(crate) fn take_back(&mut self, memory: Vec<R>) {
        if self.spare.capacity() < memory.capacity() {
            self.spare = memory;
        }
    }

    /// Whether nothing was taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.runs.is_empty()
    }

    /// Adds a run.
    pub(crate) fn add(&mut self, run: Sorted<R>) -> io::Result<()> {
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
    pub(crate) fn finish(mut self) -> io::Result<Sorted<R>> {
        if self.runs.is_empty() {
            return Ok(Sorted::Memory(self.rest()));
        }
        if !self.buffer.is_empty() {
            self.spill()?;
        }
        (self.buffer, self.spare) = (Vec::new(), Vec::new());
        let runs: Vec<Sorted<R>> = self.runs.into_iter().map(|(_, run)| run).collect();
        in_first(&self.folders, |folder| merge(&runs, folder))
    }

    /// The same, to be put in order while they are read: they are written once less, and each reader takes longer. What is in memory stays there.
    pub(crate) fn runs(mut self) -> Runs<R> {
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
pub(crate) fn run<R: Record>(
    records: &mut Vec<R>,
    folders: &[impl AsRef<Path>],
) -> io::Result<Sorted<R>> {
    sort(records);
    let run = in_first(folders, |folder| write(records, folder));
    records.clear();
    run
}

fn sort<R: Record>(records: &mut Vec<R>) {
    records.sort_unstable();
    records.dedup_by(|next, record| record.join(next));
}

/// Does it in the first of the folders in which it can be done.
pub(crate) fn in_first<T>(
    folders: &[impl AsRef<Path>],
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let mut failure = io::ErrorKind::NotFound.into();
    for folder in folders {
        match make(folder.as_ref()) {
            Ok(made) => return Ok(made),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Records in their order.
pub(crate) enum Sorted<R> {
    Memory(Vec<R>),
    File { file: File, len: u64 },
}

impl<R> Default for Sorted<R> {
    fn default() -> Self {
        Sorted::Memory(Vec::new())
    }
}

impl<R: Record> Sorted<R> {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Sorted::Memory(records) => records.len() as u64,
            Sorted::File { len, .. } => *len,
        }
    }

    /// Appends some of them to `records`.
    pub(crate) fn read(&self, range: Range<u64>, records: &mut Vec<R>) -> io::Result<()> {
        let index = |number: u64| usize::try_from(number).map_err(io::Error::other);
        match self {
            Sorted::Memory(all) => {
                let some = all.get(index(range.start)?..index(range.end)?);
                records.extend_from_slice(some.unwrap_or_default());
            }
            Sorted::File { file, .. } => {
                let mut bytes = vec![0; index(range.end - range.start)? * R::BYTES];
                file.read_exact_at(&mut bytes, range.start * R::BYTES as u64)?;
                records.extend(bytes.chunks_exact(R::BYTES).map(R::load));
            }
        }
        Ok(())
    }

    /// Calls `found` with some of them.
    pub(crate) fn each_in(
        &self,
        range: Range<u64>,
        mut found: impl FnMut(R) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut reader = Reader::of(self, range);
        while let Some(record) = reader.next()? {
            found(record)?;
        }
        Ok(())
    }

    /// Calls `found` with each of them.
    pub(crate) fn each(&self, found: impl FnMut(R) -> io::Result<()>) -> io::Result<()> {
        self.each_in(0..self.len(), found)
    }
}

/// Writes a run.
struct RunWriter<R> {
    file: File,
    bytes: Vec<u8>,
    len: u64,
    written: u64,
    of: PhantomData<R>,
}

impl<R: Record> RunWriter<R> {
    fn new(folder: &Path) -> io::Result<RunWriter<R>> {
        Ok(RunWriter {
            file: tempfile::tempfile_in(folder)?,
            bytes: Vec::with_capacity(BATCH * R::BYTES),
            len: 0,
            written: 0,
            of: PhantomData,
        })
    }

    fn push(&mut self, record: &R) -> io::Result<()> {
        record.store(&mut self.bytes);
        self.len += 1;
        if self.bytes.len() >= BATCH * R::BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.bytes, self.written)?;
        self.written += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<Sorted<R>> {
        self.write()?;
        Ok(Sorted::File {
            file: self.file,
            len: self.len,
        })
    }
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
