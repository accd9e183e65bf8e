//! Lanes on which a viewer shows a thread whose spans overlap: on each lane, any two spans nest.

use crate::base::span_stack::{OpenSpan, SpanStack, UNFINISHED};
use crate::summary::nesting::Span;
use std::cmp::Reverse;

/// Maximum number of lanes of a thread, including its own. A span that does not fit on any of them
/// stays on the thread's own lane, and is reported.
const MAX_LANES: usize = 256;
/// Maximum number of open spans on all lanes of a thread. With more spans, the outermost one of a
/// lane is dropped, and overlaps with it are not detected.
pub(super) const MAX_OPEN: usize = 1 << 17;

/// An open span with its number.
type LaneSpan = OpenSpan<u64>;

/// Returns the number of an open span, or `None` if the span has no end. Later spans are rarely
/// children of such a span, although it contains them.
fn finite_number(open: &LaneSpan) -> Option<u64> {
    (open.end_ns != UNFINISHED).then_some(open.value)
}

/// Lanes of one thread, each with its open spans.
#[derive(Default)]
pub(crate) struct LaneStacks {
    lanes: Vec<SpanStack<u64>>,
    /// Number of open spans on all lanes.
    open: usize,
    placed: u64,
    /// Lane of the last span.
    last: usize,
}

impl LaneStacks {
    /// Returns the lane for a span, or `None` if there is none left. A span that does not move
    /// stays on lane 0. One that moves goes to the lane of its parent if that moved, too. Otherwise
    /// it gets the first empty lane. A lane with only unfinished spans counts as empty. Spans must
    /// be added in the order in which viewers process them: sorted by begin, and the longest first
    /// if several begin together.
    pub(crate) fn add_span(&mut self, (start, end): Span, moves: bool) -> Option<usize> {
        if self.lanes.is_empty() {
            self.lanes.push(SpanStack::default());
        }
        for lane in &mut self.lanes {
            while lane.pop_ended(start).is_some() {
                self.open -= 1;
            }
        }
        let lane = if moves { self.other_lane(end)? } else { 0 };
        let (value, open) = (self.placed, &mut self.lanes[lane]);
        open.push(OpenSpan {
            start_ns: start,
            end_ns: end,
            value,
        });
        self.open += 1;
        if self.open > MAX_OPEN {
            open.pop_outermost();
            self.open -= 1;
        }
        (self.placed, self.last) = (value + 1, lane);
        Some(lane)
    }

    /// Returns the lane for a span with this end that moves.
    fn other_lane(&mut self, end: i64) -> Option<usize> {
        let parent = |lane: &SpanStack<u64>| lane.innermost().and_then(finite_number);
        let fits = |lane: &SpanStack<u64>| lane.innermost().is_none_or(|open| end <= open.end_ns);
        let others = self.lanes.iter().enumerate().skip(1);
        let fitting = others.filter(|(_, lane)| fits(lane));
        let with_parent = fitting
            .clone()
            .map(|(number, lane)| (parent(lane), Reverse(number)));
        let best = with_parent.max();
        let own_parent = self.lanes[0].parent(end).and_then(finite_number);
        if let Some((parent, Reverse(lane))) = best
            && parent > own_parent
        {
            return Some(lane);
        }
        let empty = fitting.clone().find(|(_, lane)| parent(lane).is_none());
        match empty.map(|(lane, _)| lane) {
            Some(lane) => Some(lane),
            None if self.lanes.len() < MAX_LANES => {
                self.lanes.push(SpanStack::default());
                Some(self.lanes.len() - 1)
            }
            None => best.map(|(_, Reverse(lane))| lane),
        }
    }

    /// Returns the lane for an instant or a flow, after all spans up to that time were added. This
    /// is the lane of the open span that began last. Unfinished spans only count if no other span
    /// is open. If no span is open, the lane of the last span is returned.
    pub(crate) fn lane_at(&mut self, time: i64) -> usize {
        let mut best = None;
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            while lane.pop_ended(time.saturating_sub(1)).is_some() {
                self.open -= 1;
            }
            let open = lane.innermost();
            best = best.max(open.map(|open| (finite_number(open), open.value, number)));
        }
        best.map_or(self.last, |(_, _, lane)| lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_spans_are_bounded() {
        let mut lanes = LaneStacks::default();
        for number in 0..200_000 {
            assert_eq!(lanes.add_span((number, 900_000 - number), false), Some(0));
        }
        assert_eq!((lanes.open, lanes.lanes[0].len()), (MAX_OPEN, MAX_OPEN));
        assert_eq!(lanes.add_span((900_001, 900_002), false), Some(0));
        assert_eq!((lanes.open, lanes.lanes[0].len()), (1, 1));
    }
}
