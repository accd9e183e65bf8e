//! Begun spans and what ends them: which `E` belongs to which `B`.

use crate::span::lane_events::{At, Kind, Mark};
use crate::store::sorter::{Sorted, Sorter};
use std::collections::VecDeque;
use std::io;

/// Begun spans of a thread that may wait for their end, with which each end is compared; one that waits below more of them counts as
/// unfinished. No stack is as deep, and what was never ended soon makes room.
const WAITING: usize = 512;

/// Finds the end of each begun span as viewers do: an end belongs to the last one that waits for one and has its name and category,
/// or whatever name and category if it has none itself.
///
/// Of what happens at one time viewers take ends first, so that a span whose begin and end have the same time never ends for them. It
/// counts as one of no length here: it stays with what is around it.
pub(crate) fn join(halves: &Sorted<Mark>, marks: &mut Sorter<'_, Mark>) -> io::Result<()> {
    let mut open = Halves {
        marks,
        waiting: VecDeque::new(),
        early: Vec::new(),
    };
    halves.each(|half| open.take(half))?;
    open.end_early()?;
    open.leave_unfinished()
}

struct Halves<'a, 'f> {
    marks: &'a mut Sorter<'f, Mark>,
    /// Begins of one thread in the order of times.
    waiting: VecDeque<Mark>,
    /// Ends of one time that ended nothing that began before.
    early: Vec<Mark>,
}

impl Halves<'_, '_> {
    fn take(&mut self, half: Mark) -> io::Result<()> {
        let is_later = |early: &Mark| (early.row, early.start) != (half.row, half.start);
        if self.early.first().is_some_and(is_later) {
            self.end_early()?;
        }
        if self
            .waiting
            .front()
            .is_some_and(|first| first.row != half.row)
        {
            self.leave_unfinished()?;
        }
        if half.kind == Kind::Begin {
            return self.begin(half);
        }
        let begun = self.waiting.iter().rposition(|begin| ends(&half, begin));
        if begun.is_none() && self.early.len() < WAITING {
            self.early.push(half);
        }
        self.end(begun, &half)
    }

    fn begin(&mut self, half: Mark) -> io::Result<()> {
        self.waiting.push_back(half);
        if self.waiting.len() <= WAITING {
            return Ok(());
        }
        let first = self.waiting.pop_front();
        first.map_or(Ok(()), |first| self.marks.push(unfinished(first)))
    }

    fn end(&mut self, begun: Option<usize>, end: &Mark) -> io::Result<()> {
        let begun = begun.and_then(|begun| self.waiting.remove(begun));
        begun.map_or(Ok(()), |begin| {
            self.marks.push(Mark {
                end: end.start,
                end_at: Some(end.at),
                ..begin
            })
        })
    }

    /// Ends what began at the same time as its end, and stands before it.
    fn end_early(&mut self) -> io::Result<()> {
        for end in std::mem::take(&mut self.early) {
            let before = self
                .waiting
                .partition_point(|begin| begin.start < end.start);
            let same_time = self.waiting.range(before..);
            let begun = same_time
                .map(|begin| begin.at < end.at && ends(&end, begin))
                .rposition(|is_its| is_its);
            self.end(begun.map(|begun| before + begun), &end)?;
        }
        Ok(())
    }

    fn leave_unfinished(&mut self) -> io::Result<()> {
        let marks = &mut self.marks;
        self.waiting
            .drain(..)
            .try_for_each(|mark| marks.push(unfinished(mark)))
    }
}

fn unfinished(mark: Mark) -> Mark {
    Mark {
        end_at: None,
        ..mark
    }
}

/// Whether an end has the name and category of a begin, or none.
fn ends(end: &Mark, begin: &Mark) -> bool {
    end.end_at
        .zip(begin.end_at)
        .is_some_and(|(end, begin)| are_of_one(end, begin))
}

/// The same of what name and category are told by.
pub(crate) fn are_of_one(end: At, begin: At) -> bool {
    let same = |of_end: u32, of_begin: u32| of_end == 0 || of_end == of_begin;
    same(end.chunk, begin.chunk) && same(end.nth, begin.nth)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joins halves told by phase, time and name; gives for each begin its begin, and its end if it has one.
    fn joined(halves: &[(Kind, i64, u32)]) -> Vec<(i64, Option<i64>)> {
        let folder = std::env::temp_dir();
        let (mut sorter, mut marks) = (Sorter::new(&folder), Sorter::new(&folder));
        for ((kind, start, name), nth) in halves.iter().zip(0..) {
            let mark = Mark {
                row: 0,
                start: *start,
                kind: *kind,
                longest: 0,
                at: At { chunk: 0, nth },
                end: i64::MAX,
                end_at: Some(At {
                    chunk: 1,
                    nth: *name,
                }),
            };
            sorter.push(mark).unwrap();
        }
        join(&sorter.finish().unwrap(), &mut marks).unwrap();
        let mut found = Vec::new();
        let keep = |mark: Mark| {
            found.push((mark.start, mark.end_at.map(|_| mark.end)));
            Ok(())
        };
        marks.finish().unwrap().each(keep).unwrap();
        found
    }

    const B: Kind = Kind::Begin;
    const E: Kind = Kind::End;

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
