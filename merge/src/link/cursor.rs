//! Records looked up by their key, asked for in order.

use super::records::Keyed;
use crate::store::sorter::Ascending;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::records::Alias;
    use crate::store::sorter::Sorter;

    #[test]
    fn records_are_found_in_order_and_others_are_passed_over() {
        let folders = [std::env::temp_dir()];
        let mut sorter = Sorter::in_any(&folders, 1 << 20);
        for (other, id) in [(5, 51), (9, 90), (5, 50), (7, 70)] {
            let reason = 0;
            sorter.push(Alias { other, id, reason }).unwrap();
        }
        let sorted = sorter.finish().unwrap();
        let mut aliases = Cursor::new(sorted.read_from(|_| false).unwrap()).unwrap();
        let mut ids_of = |key| {
            let mut ids = Vec::new();
            while let Some(alias) = aliases.at(key).unwrap() {
                ids.push(alias.id);
                aliases.step().unwrap();
            }
            ids
        };
        assert!(ids_of(4).is_empty());
        assert_eq!(ids_of(5), [50, 51]);
        assert!(ids_of(8).is_empty());
        assert_eq!(ids_of(9), [90]);
        assert!(ids_of(u64::MAX).is_empty());
    }
}
