//! What is known of single events, found again by their chunk.

use crate::pass::chunk::EventRef;
use crate::store::sorter::Record;
use std::iter::Peekable;
use std::slice::Iter;

/// Says something of one event. Its order begins with which event that is.
pub(crate) trait OfEvent: Record {
    /// The event.
    fn at(&self) -> EventRef;
}

/// Returns the record of one event from those in order.
pub(crate) fn find<R: OfEvent>(records: &[R], at: EventRef) -> Option<&R> {
    let found = records.binary_search_by(|record| record.at().cmp(&at));
    records.get(found.ok()?)
}

/// The records of a chunk's events, asked for in the order of these.
pub(crate) struct OfChunk<'a, R> {
    left: Peekable<Iter<'a, R>>,
    nth: u32,
}

impl<'a, R: OfEvent> OfChunk<'a, R> {
    /// Picks the records of one chunk from those in order.
    pub(crate) fn new(records: &'a [R], number: usize) -> OfChunk<'a, R> {
        let is_before = |record: &R| (record.at().chunk as usize) < number;
        let from_chunk = &records[records.partition_point(is_before)..];
        let end = from_chunk.partition_point(|record| record.at().chunk as usize == number);
        OfChunk {
            left: from_chunk[..end].iter().peekable(),
            nth: 0,
        }
    }

    /// Whether there are none left.
    pub(crate) fn is_empty(&self) -> bool {
        self.left.len() == 0
    }

    /// The record of the next event, if it has one.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&'a R> {
        let nth = self.nth;
        self.nth += 1;
        self.left.next_if(|next| next.at().nth == nth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event and what is said of it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct TestRecord(EventRef, u32);

    impl OfEvent for TestRecord {
        fn at(&self) -> EventRef {
            self.0
        }
    }

    impl Record for TestRecord {}

    #[test]
    fn records_are_found_by_chunk_and_number() {
        let one = |chunk, nth, said| TestRecord(EventRef { chunk, nth }, said);
        let all = vec![one(0, 3, 1), one(2, 0, 2), one(2, 1, 1), one(2, 9, 2)];
        let said = |chunk: usize| {
            let mut of_chunk = OfChunk::new(&all, chunk);
            let said: Vec<u32> = (0..11)
                .map(|_| of_chunk.next().map_or(0, |said| said.1))
                .collect();
            assert!(of_chunk.is_empty());
            said
        };
        assert_eq!(said(0), [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(said(1), [0; 11]);
        assert_eq!(said(2), [2, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
        assert_eq!(said(3), [0; 11]);
        let find = |chunk, nth| {
            let found = find(&all, EventRef { chunk, nth });
            found.map_or(0, |said| said.1)
        };
        assert_eq!([0, 3, 4].map(|nth| find(0, nth)), [0, 1, 0]);
        assert_eq!([0, 1, 2, 9, 10].map(|nth| find(2, nth)), [2, 1, 0, 2, 0]);
        assert_eq!([1, 3, 9].map(|chunk| find(chunk, 0)), [0; 3]);
    }
}
