//! Records read in their order.

use super::record::Record;
use super::sorted::Sorted;
use std::io;
use std::ops::Range;

/// Reads a run, or a stretch of it, a batch at a time.
pub struct Reader<'a, R> {
    run: &'a Sorted<R>,
    /// Most records that are read at once.
    most: u64,
    batch: Vec<R>,
    at: usize,
    /// What is not read yet.
    left: Range<u64>,
}

impl<'a, R: Record> Reader<'a, R> {
    /// Creates a reader of a range of a run. It reads at most `most` records at once.
    pub(super) fn new(run: &'a Sorted<R>, left: Range<u64>, most: u64) -> Reader<'a, R> {
        Reader {
            run,
            most,
            batch: Vec::new(),
            at: 0,
            left,
        }
    }

    /// Returns the next record; `None` at the end.
    ///
    /// # Errors
    /// If a temporary file cannot be read.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator's next gives no error"
    )]
    pub fn next(&mut self) -> io::Result<Option<R>> {
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
