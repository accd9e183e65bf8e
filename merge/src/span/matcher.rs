//! Begun spans and what ends them: which `E` belongs to which `B`.

use crate::span::lane_event::LaneEvent;
use crate::span::span_half::{Side, SpanHalf};
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
pub(crate) fn join(
    halves: &Sorted<SpanHalf>,
    events: &mut Sorter<'_, LaneEvent>,
) -> io::Result<()> {
    let mut open = Halves {
        events,
        waiting: VecDeque::new(),
        early: Vec::new(),
    };
    halves.each(|half| open.take(half))?;
    open.end_early()?;
    open.leave_unfinished()
}

struct Halves<'a, 'f> {
    events: &'a mut Sorter<'f, LaneEvent>,
    /// Begins of one thread in the order of times.
    waiting: VecDeque<SpanHalf>,
    /// Ends of one time that ended nothing that began before.
    early: Vec<SpanHalf>,
}

impl Halves<'_, '_> {
    fn take(&mut self, half: SpanHalf) -> io::Result<()> {
        let is_later = |early: &SpanHalf| (early.row, early.start) != (half.row, half.start);
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
        if half.side == Side::Begin {
            return self.begin(half);
        }
        let begun = self
            .waiting
            .iter()
            .rposition(|begin| half.labels.end(begin.labels));
        if begun.is_none() && self.early.len() < WAITING {
            self.early.push(half);
        }
        self.end(begun, &half)
    }

    fn begin(&mut self, half: SpanHalf) -> io::Result<()> {
        self.waiting.push_back(half);
        if self.waiting.len() <= WAITING {
            return Ok(());
        }
        let first = self.waiting.pop_front();
        first.map_or(Ok(()), |first| {
            self.events.push(LaneEvent::begun(&first, None))
        })
    }

    fn end(&mut self, begun: Option<usize>, end: &SpanHalf) -> io::Result<()> {
        let begun = begun.and_then(|begun| self.waiting.remove(begun));
        begun.map_or(Ok(()), |begin| {
            let ended = Some((end.start, end.at));
            self.events.push(LaneEvent::begun(&begin, ended))
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
                .map(|begin| begin.at < end.at && end.labels.end(begin.labels))
                .rposition(|is_its| is_its);
            self.end(begun.map(|begun| before + begun), &end)?;
        }
        Ok(())
    }

    fn leave_unfinished(&mut self) -> io::Result<()> {
        let events = &mut self.events;
        self.waiting
            .drain(..)
            .try_for_each(|begin| events.push(LaneEvent::begun(&begin, None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::event_ref::EventRef;
    use crate::pass::labels::Labels;

    /// Joins halves told by phase, time and name; gives for each begin its begin, and its end if it has one.
    fn joined(halves: &[(Side, i64, u32)]) -> Vec<(i64, Option<i64>)> {
        let folder = std::env::temp_dir();
        let (mut sorter, mut events) = (Sorter::new(&folder), Sorter::new(&folder));
        for ((side, start, name), nth) in halves.iter().zip(0..) {
            let half = SpanHalf {
                row: 0,
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
        join(&sorter.finish().unwrap(), &mut events).unwrap();
        let mut found = Vec::new();
        let keep = |event: LaneEvent| {
            found.push((event.start, event.end_at.map(|_| event.end)));
            Ok(())
        };
        events.finish().unwrap().each(keep).unwrap();
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
