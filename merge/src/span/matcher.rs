//! Begun spans and what ends them: which `E` belongs to which `B`.

use crate::span::begun_spans::{BegunSpans, WAITING};
use crate::span::span_half::{RowKey, Side, SpanHalf};
use crate::store::sorter::Sorted;
use std::io;

/// Finds the end of each begun span as viewers do: an end belongs to the last one that waits for one and has its name and category,
/// or whatever name and category if it has none itself.
///
/// Of what happens at one time viewers take ends first, so that a span whose begin and end have the same time never ends for them. It
/// counts as one of no length here: it stays with what is around it.
///
/// Calls `found` with each begin, and its end if it has one.
pub(crate) fn join<K: RowKey>(
    halves: &Sorted<SpanHalf<K>>,
    found: impl FnMut(&SpanHalf<K>, Option<&SpanHalf<K>>) -> io::Result<()>,
) -> io::Result<()> {
    let mut open = Halves {
        found,
        waiting: BegunSpans::default(),
        early: Vec::new(),
    };
    halves.each(|half| open.take(half))?;
    open.end_early()?;
    open.leave_unfinished()
}

struct Halves<K, F> {
    found: F,
    /// Begins of one row in the order of times.
    waiting: BegunSpans<SpanHalf<K>>,
    /// Ends of one time that ended nothing that began before.
    early: Vec<SpanHalf<K>>,
}

impl<K, F> Halves<K, F>
where
    K: RowKey,
    F: FnMut(&SpanHalf<K>, Option<&SpanHalf<K>>) -> io::Result<()>,
{
    fn take(&mut self, half: SpanHalf<K>) -> io::Result<()> {
        let is_later = |early: &SpanHalf<K>| (early.row, early.start) != (half.row, half.start);
        if self.early.first().is_some_and(is_later) {
            self.end_early()?;
        }
        let is_of_another = |first: &SpanHalf<K>| first.row != half.row;
        if self.waiting.first().is_some_and(is_of_another) {
            self.leave_unfinished()?;
        }
        if half.side == Side::Begin {
            let first = self.waiting.begin(half);
            return first.map_or(Ok(()), |first| (self.found)(&first, None));
        }
        match self.waiting.end(|begin| half.labels.end(begin.labels)) {
            Some(begin) => (self.found)(&begin, Some(&half)),
            None => {
                if self.early.len() < WAITING {
                    self.early.push(half);
                }
                Ok(())
            }
        }
    }

    /// Ends what began at the same time as its end, and stands before it.
    fn end_early(&mut self) -> io::Result<()> {
        for end in std::mem::take(&mut self.early) {
            let is_its = |begin: &SpanHalf<K>| begin.at < end.at && end.labels.end(begin.labels);
            let begun = self
                .waiting
                .end_behind(|begin| begin.start < end.start, is_its);
            begun.map_or(Ok(()), |begin| (self.found)(&begin, Some(&end)))?;
        }
        Ok(())
    }

    fn leave_unfinished(&mut self) -> io::Result<()> {
        let found = &mut self.found;
        let mut left = self.waiting.leave();
        left.try_for_each(|begin| found(&begin, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::event_ref::EventRef;
    use crate::pass::labels::Labels;
    use crate::store::sorter::Sorter;

    /// Joins halves told by phase, time and name; gives for each begin its begin, and its end if it has one.
    fn joined(halves: &[(Side, i64, u32)]) -> Vec<(i64, Option<i64>)> {
        let folder = std::env::temp_dir();
        let mut sorter = Sorter::new(&folder);
        for ((side, start, name), nth) in halves.iter().zip(0..) {
            let half = SpanHalf {
                row: 0_u32,
                start: *start,
                side: *side,
                at: EventRef { chunk: 0, nth },
                labels: Labels {
                    category: 1,
                    name: *name,
                },
            };
            sorter.push(half).unwrap();
        }
        let mut found = Vec::new();
        join(&sorter.finish().unwrap(), |begin, end| {
            found.push((begin.start, end.map(|end| end.start)));
            Ok(())
        })
        .unwrap();
        found.sort_unstable();
        found
    }

    const B: Side = Side::Begin;
    const E: Side = Side::End;

    #[test]
    fn an_end_belongs_to_the_last_begin_of_its_name() {
        let halves = [
            (B, 1, 7),
            (B, 2, 8),
            (B, 3, 7),
            (E, 4, 7),
            (E, 5, 9),
            (E, 6, 0),
            (E, 7, 7),
        ];
        let expected = [(1, Some(7)), (2, Some(6)), (3, Some(4))];
        assert_eq!(joined(&halves), expected);
    }

    #[test]
    fn of_one_time_ends_come_first() {
        let touching = [(B, 1, 7), (B, 5, 7), (E, 5, 7), (E, 9, 7)];
        assert_eq!(joined(&touching), [(1, Some(5)), (5, Some(9))]);
        let same_time = [(B, 1, 7), (B, 5, 8), (E, 5, 8), (E, 9, 7)];
        assert_eq!(joined(&same_time), [(1, Some(9)), (5, Some(5))]);
        let end_first = [(B, 1, 7), (E, 5, 8), (B, 5, 8), (E, 9, 7)];
        assert_eq!(joined(&end_first), [(1, Some(9)), (5, None)]);
    }

    #[test]
    fn what_waits_is_bounded() {
        let begins = (0..600).map(|time| (B, time, 7));
        let ends = (600..1300).map(|time| (E, time, 7));
        let found = joined(&begins.chain(ends).collect::<Vec<_>>());
        let ended = found.iter().filter(|(_, end)| end.is_some()).count();
        assert_eq!((found.len(), ended), (600, WAITING));
    }
}
