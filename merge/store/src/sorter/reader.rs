//! Records read in their order.

use super::record::Record;
use super::sorted::{BATCH, Sorted};
use std::io;
use std::ops::Range;

/// Reads a run, or a stretch of it, a batch at a time.
pub(super) struct Reader<'a, R> {
    run: &'a Sorted<R>,
    /// Most records that are read at once.
    most: u64,
    batch: Vec<R>,
    at: usize,
    /// What is not read yet.
    left: Range<u64>,
}

impl<'a, R: Record> Reader<'a, R> {
    pub(crate) fn new(run: &'a Sorted<R>) -> Reader<'a, R> {
        Reader::of(run, 0..run.len())
    }

    /// Reads a stretch of a run.
    pub(super) fn of(run: &'a Sorted<R>, left: Range<u64>) -> Reader<'a, R> {
        Reader {
            run,
            most: BATCH as u64,
            batch: Vec::new(),
            at: 0,
            left,
        }
    }

    /// Reads a run from the first record on of which `is_before` is not true.
    pub(super) fn from(
        run: &'a Sorted<R>,
        is_before: impl Fn(&R) -> bool,
    ) -> io::Result<Reader<'a, R>> {
        let (mut low, mut high) = (0, run.len());
        let mut one = Vec::new();
        while low < high {
            let middle = low.midpoint(high);
            one.clear();
            run.read(middle..middle + 1, &mut one)?;
            if one.first().is_some_and(&is_before) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(Reader::of(run, low..run.len()))
    }

    /// Reads so many records at once, if it otherwise would read more.
    pub(super) fn read_at_once(&mut self, records: usize) {
        self.most = self.most.min(records as u64);
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<R>> {
        if self.at == self.batch.len() {
            let end = self.left.end.min(self.left.start + self.most);
            self.batch.clear();
            self.run.read(self.left.start..end, &mut self.batch)?;
            (self.at, self.left.start) = (0, end);
        }
        let record = self.batch.get(self.at).copied();
        self.at += usize::from(record.is_some());
        Ok(record)
    }
}
