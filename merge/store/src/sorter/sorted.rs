//! Records in their order: in memory while they are few, else in a temporary file without a name.

use super::reader::Reader;
use super::record::Record;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Records read or written at a time.
pub(super) const BATCH: u64 = 1024;

/// Records in their order.
pub enum Sorted<R> {
    /// In memory.
    Memory(Vec<R>),
    /// In a file, stored one behind the other.
    File {
        /// The file, which has no name.
        file: File,
        /// How many there are.
        len: u64,
    },
}

impl<R> Default for Sorted<R> {
    fn default() -> Self {
        Sorted::Memory(Vec::new())
    }
}

impl<R: Record> Sorted<R> {
    /// How many there are.
    pub fn len(&self) -> u64 {
        match self {
            Sorted::Memory(records) => records.len() as u64,
            Sorted::File { len, .. } => *len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends some of them to `records`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self, range: Range<u64>, records: &mut Vec<R>) -> io::Result<()> {
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

    /// Reads all of them in their order.
    pub fn reader(&self) -> Reader<'_, R> {
        Reader::new(self, 0..self.len(), BATCH)
    }

    /// Reads the records from the first one on for which `is_before` is false. It must be false for all records after that one.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_from(&self, is_before: impl Fn(&R) -> bool) -> io::Result<Reader<'_, R>> {
        let (mut low, mut high) = (0, self.len());
        let mut one = Vec::new();
        while low < high {
            let middle = low.midpoint(high);
            one.clear();
            self.read(middle..middle + 1, &mut one)?;
            if one.first().is_some_and(&is_before) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(Reader::new(self, low..self.len(), BATCH))
    }

    /// Calls `found` with each record.
    ///
    /// # Errors
    /// If the file cannot be read, and those of `found`.
    pub fn each(&self, mut found: impl FnMut(R) -> io::Result<()>) -> io::Result<()> {
        let mut reader = self.reader();
        while let Some(record) = reader.next()? {
            found(record)?;
        }
        Ok(())
    }

    /// Calls `found` with each group of records with the same key.
    ///
    /// # Errors
    /// If the file cannot be read, or if `found` fails.
    pub fn each_group<K: PartialEq>(
        &self,
        key: impl Fn(&R) -> K,
        mut found: impl FnMut(&[R]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut group: Vec<R> = Vec::new();
        self.each(|record| {
            if group.last().is_some_and(|last| key(last) != key(&record)) {
                found(&group)?;
                group.clear();
            }
            group.push(record);
            Ok(())
        })?;
        match group.is_empty() {
            true => Ok(()),
            false => found(&group),
        }
    }
}

/// Writes a run.
pub(super) struct RunWriter<R> {
    file: File,
    bytes: Vec<u8>,
    len: u64,
    written: u64,
    of: PhantomData<R>,
}

impl<R: Record> RunWriter<R> {
    pub(super) fn new(folder: &Path) -> io::Result<RunWriter<R>> {
        Ok(RunWriter {
            file: tempfile::tempfile_in(folder)?,
            bytes: Vec::new(),
            len: 0,
            written: 0,
            of: PhantomData,
        })
    }

    pub(super) fn push(&mut self, record: &R) -> io::Result<()> {
        record.store(&mut self.bytes);
        self.len += 1;
        match self.len.is_multiple_of(BATCH) {
            true => self.write(),
            false => Ok(()),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.bytes, self.written)?;
        self.written += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<Sorted<R>> {
        self.write()?;
        Ok(Sorted::File {
            file: self.file,
            len: self.len,
        })
    }
}
