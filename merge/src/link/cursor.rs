//! Records looked up by their key, asked for in order.

use super::row::Keyed;
use crate::sorter::Ascending;
use std::io;

/// Finds records by their key, asked for in order.
pub(super) struct Cursor<'a, R> {
    records: Ascending<'a, R>,
    next: Option<R>,
}

impl<'a, R: Keyed> Cursor<'a, R> {
    pub(super) fn new(mut records: Ascending<'a, R>) -> io::Result<Self> {
        let next = records.next()?;
        Ok(Cursor { records, next })
    }

    pub(super) fn at(&mut self, key: u64) -> io::Result<Option<R>> {
        while self.next.is_some_and(|next| next.key() < key) {
            self.step()?;
        }
        Ok(self.next.filter(|next| next.key() == key))
    }

    pub(super) fn step(&mut self) -> io::Result<()> {
        self.next = self.records.next()?;
        Ok(())
    }
}
