//! Sorted runs that are read as one, without being written as one.

use super::reader::Reader;
use super::record::Record;
use super::sorted::Sorted;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;

/// Most bytes of records that are read ahead of all runs that are read as one, as far as a few of each are not more.
const BYTES: usize = 512 << 10;
const LEAST: usize = 16;

/// Sorted runs of the same kind of records.
pub struct Runs<R>(pub(super) Vec<Sorted<R>>);

impl<R: Record> Runs<R> {
    /// Those of several.
    pub fn of(several: Vec<Runs<R>>) -> Runs<R> {
        Runs(several.into_iter().flat_map(|runs| runs.0).collect())
    }

    /// How many records they have, those that are one counted by themselves.
    pub fn len(&self) -> u64 {
        self.0.iter().map(Sorted::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All records in their order, from the first one on of which `is_before` is not true. It has to be true of those before that, of no others, and to say
    /// the same of records that are one.
    ///
    /// # Errors
    /// If a temporary file cannot be read.
    pub fn read_from(&self, is_before: impl Fn(&R) -> bool) -> io::Result<Ascending<'_, R>> {
        let from = |run| Reader::from(run, &is_before);
        let readers = self.0.iter().map(from).collect::<io::Result<_>>()?;
        Ascending::of(readers)
    }
}

impl<R: Record> Sorted<R> {
    /// The same of one run.
    ///
    /// # Errors
    /// If a temporary file cannot be read.
    pub fn read_from(&self, is_before: impl Fn(&R) -> bool) -> io::Result<Ascending<'_, R>> {
        Ascending::of(vec![Reader::from(self, is_before)?])
    }
}

/// Records of several runs in their order.
pub struct Ascending<'a, R> {
    readers: Vec<Reader<'a, R>>,
    /// The first record of each run that has any left.
    heads: BinaryHeap<Reverse<(R, usize)>>,
}

impl<'a, R: Record> Ascending<'a, R> {
    pub(super) fn new(runs: &'a [Sorted<R>]) -> io::Result<Ascending<'a, R>> {
        Ascending::of(runs.iter().map(Reader::new).collect())
    }

    fn of(mut readers: Vec<Reader<'a, R>>) -> io::Result<Ascending<'a, R>> {
        let mut heads = BinaryHeap::new();
        let batch = BYTES / R::BYTES / readers.len().max(1);
        for reader in &mut readers {
            reader.read_at_once(batch.max(LEAST));
        }
        for (number, reader) in readers.iter_mut().enumerate() {
            heads.extend(reader.next()?.map(|record| Reverse((record, number))));
        }
        Ok(Ascending { readers, heads })
    }

    /// The next record, with all that are one with it.
    ///
    /// # Errors
    /// If a temporary file cannot be read.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator's next gives no error"
    )]
    pub fn next(&mut self) -> io::Result<Option<R>> {
        let Some(mut whole) = self.step()? else {
            return Ok(None);
        };
        while let Some(Reverse((next, _))) = self.heads.peek() {
            if !whole.join(next) {
                break;
            }
            self.step()?;
        }
        Ok(Some(whole))
    }

    /// The next record of any run.
    fn step(&mut self) -> io::Result<Option<R>> {
        let Some(mut head) = self.heads.peek_mut() else {
            return Ok(None);
        };
        let Reverse((record, number)) = *head;
        match self.readers[number].next()? {
            Some(next) => head.0.0 = next,
            None => drop(PeekMut::pop(head)),
        }
        Ok(Some(record))
    }
}
