//! Lanes on which a viewer shows a thread whose spans overlap: on each lane, any two spans nest.

use crate::base::span_stack::{OpenSpan, SpanStack, UNFINISHED};
use crate::summary::nesting::Span;
use std::cmp::Reverse;

/// Maximum number of lanes of a thread, including its own. A span that does not fit on any of them
/// stays on the thread's own lane, and is reported.
const ROWS: usize = 256;
/// Maximum number of open spans on all lanes of a thread. With more spans, the outermost one of a
/// lane is dropped, and overlaps with it are not detected.
pub(super) const OPEN: usize = 1 << 17;

/// An open span with its number.
type LaneSpan = OpenSpan<u64>;

/// Returns the number of a span, or `None` if it never ends. Later spans are rarely children of an
/// unfinished one, although it contains them.
fn rank(open: &LaneSpan) -> Option<u64> {
    (open.end_ns != UNFINISHED).then_some(open.value)
}

/// Lanes of one thread, each with its open spans.
#[derive(Default)]
pub(crate) struct LaneRows {
    rows: Vec<SpanStack<u64>>,
    /// Number of open spans on all lanes.
    open: usize,
    placed: u64,
    /// Lane of the last span.
    last: usize,
}

impl LaneRows {
    /// Returns the lane for a span, or `None` if there is none left. A span that does not move
    /// stays on lane 0. One that moves goes to the lane of its parent if that moved, too. Otherwise
    /// it gets the first empty lane. A lane with only unfinished spans counts as empty. Spans must
    /// be added in the order in which viewers process them: sorted by begin, and the longest first
    /// if several begin together.
    pub(crate) fn place(&mut self, (start, end): Span, moves: bool) -> Option<usize> {
        if self.rows.is_empty() {
            self.rows.push(SpanStack::default());
        }
        for row in &mut self.rows {
            while row.pop_ended(start).is_some() {
                self.open -= 1;
            }
        }
        let row = if moves { self.other_row(end)? } else { 0 };
        let (value, open) = (self.placed, &mut self.rows[row]);
        open.push(OpenSpan {
            start_ns: start,
            end_ns: end,
            value,
        });
        self.open += 1;
        if self.open > OPEN {
            open.pop_outermost();
            self.open -= 1;
        }
        (self.placed, self.last) = (value + 1, row);
        Some(row)
    }

    /// Returns the lane for a span with this end that moves.
    fn other_row(&mut self, end: i64) -> Option<usize> {
        let parent = |row: &SpanStack<u64>| row.innermost().and_then(rank);
        let fits = |row: &SpanStack<u64>| row.innermost().is_none_or(|open| end <= open.end_ns);
        let others = self.rows.iter().enumerate().skip(1);
        let fitting = others.filter(|(_, row)| fits(row));
        let with_parent = fitting
            .clone()
            .map(|(number, row)| (parent(row), Reverse(number)));
        let best = with_parent.max();
        let own_parent = self.rows[0].parent(end).and_then(rank);
        if let Some((parent, Reverse(row))) = best
            && parent > own_parent
        {
            return Some(row);
        }
        let empty = fitting.clone().find(|(_, row)| parent(row).is_none());
        match empty.map(|(row, _)| row) {
            Some(row) => Some(row),
            None if self.rows.len() < ROWS => {
                self.rows.push(SpanStack::default());
                Some(self.rows.len() - 1)
            }
            None => best.map(|(_, Reverse(row))| row),
        }
    }

    /// Returns the lane for an instant or a flow, after all spans up to that time were added. This
    /// is the lane of the open span that began last. Unfinished spans only count if no other span
    /// is open. If no span is open, the lane of the last span is returned.
    pub(crate) fn at(&mut self, time: i64) -> usize {
        let mut best = None;
        for (number, row) in self.rows.iter_mut().enumerate() {
            while row.pop_ended(time.saturating_sub(1)).is_some() {
                self.open -= 1;
            }
            let open = row.innermost();
            best = best.max(open.map(|open| (rank(open), open.value, number)));
        }
        best.map_or(self.last, |(_, _, row)| row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_bounded() {
        let mut rows = LaneRows::default();
        for number in 0..200_000 {
            assert_eq!(rows.place((number, 900_000 - number), false), Some(0));
        }
        assert_eq!((rows.open, rows.rows[0].len()), (OPEN, OPEN));
        assert_eq!(rows.place((900_001, 900_002), false), Some(0));
        assert_eq!((rows.open, rows.rows[0].len()), (1, 1));
    }
}
