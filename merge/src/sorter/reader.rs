//! Records read in their order.

use super::{BATCH, Record, Sorted};
use std::io;

/// Reads a run from its begin, a batch at a time.
pub(crate) struct Reader<'a, R> {
    run: &'a Sorted<R>,
    batch: Vec<R>,
    at: usize,
    read: u64,
}

impl<'a, R: Record> Reader<'a, R> {
    pub(crate) fn new(run: &'a Sorted<R>) -> Reader<'a, R> {
        Reader {
            run,
            batch: Vec::new(),
            at: 0,
            read: 0,
        }
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<R>> {
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
