//! Begun spans and what ends them: which `E` belongs to which `B`.

use crate::base::begun_spans::BegunSpans;
use crate::span::span_half::{Side, SpanHalf};
use crate::store::sorter::Sorted;
use std::io;

/// Finds the end of each begun span, as [`BegunSpans`] says, and calls `found` with each begin, and its end if it has one.
pub(crate) fn join(
    halves: &Sorted<SpanHalf>,
    mut found: impl FnMut(&SpanHalf, Option<&SpanHalf>) -> io::Result<()>,
) -> io::Result<()> {
    // Begins of one row in the order of times.
    let mut open = BegunSpans::<SpanHalf>::default();
    halves.each(|half| {
        if open.first().is_some_and(|first| first.row != half.row) {
            open.drain().try_for_each(|begin| found(&begin, None))?;
        }
        match half.side {
            Side::Begin => {
                let first = open.begin(half);
                first.map_or(Ok(()), |first| found(&first, None))
            }
            Side::End => {
                let begin = open.end(&half);
                begin.map_or(Ok(()), |begin| found(&begin, Some(&half)))
            }
        }
    })?;
    open.drain().try_for_each(|begin| found(&begin, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::chunk::EventRef;
    use crate::pass::labels::Labels;
    use crate::span::group_key::GroupKey;
    use crate::span::span_half::ArgsPlace;
    use crate::store::sorter::Sorter;

    /// Joins halves by row, phase, time and name. Returns the row of each begin, when it was, and when it ended.
    fn joined(halves: &[(u32, Side, i64, u32)]) -> Vec<(GroupKey, i64, Option<i64>)> {
        let folder = std::env::temp_dir();
        let mut sorter = Sorter::new(&folder);
        for ((row, side, start, name), nth) in halves.iter().zip(0..) {
            let half = SpanHalf {
                row: GroupKey::Thread(*row),
                start: *start,
                side: *side,
                at: EventRef { chunk: 0, nth },
                labels: Labels {
                    category: 1,
                    name: *name,
                },
                args: ArgsPlace::default(),
            };
            sorter.push(half).unwrap();
        }
        let mut found = Vec::new();
        join(&sorter.finish().unwrap(), |begin, end| {
            found.push((begin.row, begin.start, end.map(|end| end.start)));
            Ok(())
        })
        .unwrap();
        found.sort_unstable();
        found
    }

    const B: Side = Side::Begin;
    const E: Side = Side::End;

    #[test]
    fn halves_of_one_row_belong_together() {
        let halves = [
            (0, B, 1, 7),
            (1, B, 2, 7),
            (0, B, 3, 7),
            (0, E, 4, 0),
            (1, E, 5, 7),
            (2, E, 6, 7),
        ];
        let [first, second] = [0, 1].map(GroupKey::Thread);
        let expected = [(first, 1, None), (first, 3, Some(4)), (second, 2, Some(5))];
        assert_eq!(joined(&halves), expected);
    }
}
