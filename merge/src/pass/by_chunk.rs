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
