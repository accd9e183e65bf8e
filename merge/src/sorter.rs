//! Sorts more records than memory shall hold: sorted runs of them lie in temporary files without a name, which vanish with the
//! process however it ends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

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
}

/// Takes records in any order.
pub(crate) struct Sorter<'f, R> {
    /// Where its files are.
    folder: &'f Path,
    buffer: Vec<R>,
    capacity: usize,
    /// Sorted runs, each with how often its records were merged: the largest first.
    runs: Vec<(u32, Sorted<R>)>,
}

impl<'f, R: Record> Sorter<'f, R> {
    pub(crate) fn new(folder: &'f Path) -> Sorter<'f, R> {
        Sorter::with_capacity(folder, BUFFER_BYTES / R::BYTES)
    }

    fn with_capacity(folder: &'f Path, capacity: usize) -> Sorter<'f, R> {
        Sorter {
            folder,
            buffer: Vec::new(),
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
        self.buffer.sort_unstable();
        let mut writer = RunWriter::new(self.folder)?;
        for record in self.buffer.drain(..) {
            writer.push(&record)?;
        }
        self.runs.push((0, writer.finish()?));
        while let Some(&(merged, _)) = self.runs.last() {
            let first = self.runs.partition_point(|run| run.0 > merged);
            if self.runs.len() - first < RUNS {
                break;
            }
            let runs: Vec<Sorted<R>> = self.runs.drain(first..).map(|(_, run)| run).collect();
            self.runs.push((merged + 1, merge(&runs, self.folder)?));
        }
        Ok(())
    }

    /// All records in their order.
    pub(crate) fn finish(mut self) -> io::Result<Sorted<R>> {
        if self.runs.is_empty() {
            self.buffer.sort_unstable();
            self.buffer.shrink_to_fit();
            return Ok(Sorted::Memory(self.buffer));
        }
        if !self.buffer.is_empty() {
            self.spill()?;
        }
        self.buffer = Vec::new();
        let runs: Vec<Sorted<R>> = self.runs.into_iter().map(|(_, run)| run).collect();
        merge(&runs, self.folder)
    }
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

    /// Calls `found` with each of them.
    pub(crate) fn each(&self, mut found: impl FnMut(R) -> io::Result<()>) -> io::Result<()> {
        let mut reader = Reader::new(self);
        while let Some(record) = reader.next()? {
            found(record)?;
        }
        Ok(())
    }
}

/// Reads a run from its begin, a batch at a time.
struct Reader<'a, R> {
    run: &'a Sorted<R>,
    batch: Vec<R>,
    at: usize,
    read: u64,
}

impl<'a, R: Record> Reader<'a, R> {
    fn new(run: &'a Sorted<R>) -> Reader<'a, R> {
        Reader {
            run,
            batch: Vec::new(),
            at: 0,
            read: 0,
        }
    }

    fn next(&mut self) -> io::Result<Option<R>> {
        if self.at == self.batch.len() {
            let end = self.run.len().min(self.read + BATCH as u64);
            self.batch.clear();
            self.run.read(self.read..end, &mut self.batch)?;
            (self.at, self.read) = (0, end);
        }
        let record = self.batch.get(self.at).copied();
        self.at += 1;
        Ok(record)
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

/// Makes one run of several.
fn merge<R: Record>(runs: &[Sorted<R>], folder: &Path) -> io::Result<Sorted<R>> {
    let mut readers: Vec<Reader<'_, R>> = runs.iter().map(Reader::new).collect();
    let mut heads = BinaryHeap::new();
    for (number, reader) in readers.iter_mut().enumerate() {
        heads.extend(reader.next()?.map(|record| Reverse((record, number))));
    }
    let mut writer = RunWriter::new(folder)?;
    while let Some(Reverse((record, number))) = heads.pop() {
        writer.push(&record)?;
        heads.extend(
            readers[number]
                .next()?
                .map(|record| Reverse((record, number))),
        );
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Record for (u32, u32) {
        const BYTES: usize = 8;

        fn store(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.0.to_le_bytes());
            out.extend_from_slice(&self.1.to_le_bytes());
        }

        fn load(bytes: &[u8]) -> Self {
            let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            (word(0), word(4))
        }
    }

    fn all(sorted: &Sorted<(u32, u32)>) -> Vec<(u32, u32)> {
        let mut all = Vec::new();
        let mut reader = Reader::new(sorted);
        while let Some(record) = reader.next().unwrap() {
            all.push(record);
        }
        all
    }

    #[test]
    fn in_memory_and_from_many_runs_the_order_is_the_same() {
        for (count, capacity) in [(0, 4), (3, 4), (5, 4), (9_000, 7), (9_000, 100_000)] {
            let records: Vec<(u32, u32)> = (0..count)
                .map(|number: u32| (number.wrapping_mul(2_654_435_761) % 1000, number))
                .collect();
            let folder = std::env::temp_dir();
            let mut sorter = Sorter::with_capacity(&folder, capacity);
            records
                .iter()
                .for_each(|record| sorter.push(*record).unwrap());
            let sorted = sorter.finish().unwrap();
            let mut expected = records;
            expected.sort_unstable();
            assert_eq!(sorted.len(), expected.len() as u64);
            assert_eq!(
                all(&sorted),
                expected,
                "{count} records, {capacity} at a time"
            );
            if count > 20 {
                let mut some = Vec::new();
                sorted.read(7..19, &mut some).unwrap();
                assert_eq!(some, expected[7..19]);
            }
        }
    }
}
