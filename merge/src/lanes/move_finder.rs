//! Chooses the spans that move to another lane, so that as few as possible move.
//!
//! Two spans clash if one begins during the other and ends after it. One of them must move,
//! together with its children. The finder picks the one with fewer children. Usually that is a
//! short span that ends a little too late, not the call stack that begins during it.
//!
//! Input: the spans of a thread, sorted by begin. Output: the numbers of the spans that move. All
//! others nest on the thread's own lane. The finder reads ahead, so that it can count the children
//! of a span when it begins.

use crate::base::span_stack::{OpenSpan, SpanStack, UNFINISHED};
use crate::lanes::lane_stacks::MAX_OPEN;
use crate::store::sorter::{Record, Sorted, Sorter};
use crate::summary::nesting::Span;
use std::io;
use std::path::Path;

/// Maximum number of later spans to read ahead, and so the maximum number of children that are
/// counted.
const MAX_AHEAD: usize = 1 << 14;
/// Number of later spans that may be compared for each span that is assigned. Without this limit,
/// spans that all clash would take quadratic time.
const COMPARISONS_PER_SPAN: usize = 16;
/// Number of events other than spans that count as one comparison.
const POINTS_PER_COMPARISON: usize = 64;
/// Maximum number of open spans on other lanes. Their children move with them.
const MAX_OPEN_MOVED: usize = 512;

/// Spans that move. Their numbers are consecutive, and count all spans that the finder gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MovedRange {
    pub(crate) first: u64,
    /// One past the last number.
    pub(crate) end: u64,
}

impl Record for MovedRange {}

/// A span on the thread's own lane.
#[derive(Clone, Copy, Debug)]
struct OwnSpan {
    number: u64,
    /// Number of spans that the lane had before it.
    before: u64,
}

/// Finds the spans that leave their threads' own lanes.
pub(crate) struct MoveFinder<'f> {
    ranges: Sorter<'f, MovedRange>,
    /// Number of the next span.
    next: u64,
    /// Number of later spans that may still be compared.
    comparisons: usize,
    /// Open spans on the thread's own lane. Unfinished ones are left out, because they neither
    /// clash with a later span nor act as a parent.
    own: SpanStack<OwnSpan>,
    /// Number of spans that the lane has had.
    count: u64,
    /// Numbers of open spans on other lanes. Each of them ends before the previous one. A span is
    /// left out if a span that began after it ends at the same time or later, because then it
    /// cannot be a parent of later spans.
    moved: SpanStack<u64>,
}

impl<'f> MoveFinder<'f> {
    /// Creates a finder that spills to files in `folder`.
    pub(crate) fn new(folder: &'f Path) -> MoveFinder<'f> {
        MoveFinder {
            ranges: Sorter::new(folder),
            next: 0,
            comparisons: MAX_AHEAD,
            own: SpanStack::default(),
            count: 0,
            moved: SpanStack::default(),
        }
    }

    /// Adds all events of a thread, sorted by begin. Events other than spans are `None`.
    pub(crate) fn add_thread(
        &mut self,
        mut events: impl Iterator<Item = Option<Span>> + Clone,
    ) -> io::Result<()> {
        while let Some(event) = events.next() {
            if let Some(span) = event {
                self.add_span(span, events.clone())?;
            }
        }
        (self.own, self.moved) = (SpanStack::default(), SpanStack::default());
        self.comparisons = MAX_AHEAD;
        Ok(())
    }

    /// Returns the spans that move, sorted. Ranges may overlap.
    pub(crate) fn finish(self) -> io::Result<Sorted<MovedRange>> {
        self.ranges.finish()
    }

    /// Assigns a span, which is followed by the `later` events.
    fn add_span(
        &mut self,
        span: Span,
        later: impl Iterator<Item = Option<Span>>,
    ) -> io::Result<()> {
        let (number, (start, end)) = (self.next, span);
        self.next += 1;
        self.comparisons += COMPARISONS_PER_SPAN;
        while self.own.pop_ended(start).is_some() {}
        while self.moved.pop_ended(start).is_some() {}
        let stays = match self.own.first_before(end) {
            _ if self.parent_is_moved(end) => false,
            Some(depth) => self.displaces_open(depth, span, later)?,
            None => true,
        };
        match stays {
            true => self.add_own(number, span),
            false => {
                let end = number + 1;
                self.ranges.push(MovedRange { first: number, end })?;
                self.add_moved(number, span);
            }
        }
        Ok(())
    }

    /// Returns true if the parent of a span with this end is on another lane.
    fn parent_is_moved(&self, end: i64) -> bool {
        let own = self.own.parent(end).map(|open| open.value.number);
        self.moved.parent(end).map(|open| open.value) > own
    }

    fn add_own(&mut self, number: u64, (start_ns, end_ns): Span) {
        if end_ns != UNFINISHED {
            let before = self.count;
            self.own.push(OpenSpan {
                start_ns,
                end_ns,
                value: OwnSpan { number, before },
            });
        }
        if self.own.len() > MAX_OPEN {
            self.own.pop_outermost();
        }
        self.count += 1;
    }

    fn add_moved(&mut self, number: u64, (start_ns, end_ns): Span) {
        if end_ns == UNFINISHED {
            return;
        }
        while self.moved.pop_ended(end_ns).is_some() {}
        self.moved.push(OpenSpan {
            start_ns,
            end_ns,
            value: number,
        });
        if self.moved.len() > MAX_OPEN_MOVED {
            self.moved.pop_outermost();
        }
    }

    /// Moves the spans from a depth on to another lane if the new span stays instead of them.
    /// Returns true if it does.
    fn displaces_open(
        &mut self,
        depth: usize,
        span: Span,
        later: impl Iterator<Item = Option<Span>>,
    ) -> io::Result<bool> {
        let Some(open) = self.own.get(depth).copied() else {
            return Ok(false);
        };
        if span.1 == UNFINISHED || !self.has_more_children(span, &open, later) {
            return Ok(false);
        }
        // All spans that the lane has had since then are children of the moved span.
        let first = open.value.number;
        let end = self.next - 1;
        self.ranges.push(MovedRange { first, end })?;
        let displaced_own = self.own.iter().skip(depth);
        let spans = displaced_own.map(|open| (open.value.number, (open.start_ns, open.end_ns)));
        let mut displaced: Vec<(u64, Span)> = spans.collect();
        while self
            .moved
            .innermost()
            .is_some_and(|open| open.value > first)
        {
            let later = self.moved.pop_ended(UNFINISHED);
            displaced.extend(later.map(|open| (open.value, (open.start_ns, open.end_ns))));
        }
        displaced.sort_unstable();
        for (number, span) in displaced {
            self.add_moved(number, span);
        }
        self.own.truncate(depth);
        self.count = open.value.before;
        Ok(true)
    }

    /// Returns true if a new span has more children than an open one. If the numbers are equal or
    /// too large to be counted, the longer span wins. A new span that also clashes with a later one
    /// needs more children: if it moves, both clashes are resolved.
    fn has_more_children(
        &mut self,
        (start, end): Span,
        open: &OpenSpan<OwnSpan>,
        later: impl Iterator<Item = Option<Span>>,
    ) -> bool {
        let in_open = self.count - open.value.before - 1;
        let is_longer = end - start > open.end_ns - open.start_ns;
        let (mut in_new, mut clashes, mut compared, mut points) = (0, false, 0, 0);
        let wins_tie = |in_new: u64, clashes: bool| in_new == in_open && !clashes && is_longer;
        for next in later {
            if let Some((start, _)) = next
                && (start >= end || compared == MAX_AHEAD)
            {
                break;
            }
            if self.comparisons == 0 {
                return is_longer;
            }
            let Some(next) = next else {
                points += 1;
                self.comparisons -= usize::from(points % POINTS_PER_COMPARISON == 0);
                continue;
            };
            self.comparisons -= 1;
            compared += 1;
            in_new += u64::from(next.1 <= end);
            clashes |= next.1 > end && next.1 != UNFINISHED;
            if in_new > in_open {
                return true;
            }
        }
        match compared < MAX_AHEAD {
            true => wins_tie(in_new, clashes),
            false => is_longer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers of the spans that move, for sorted spans of a thread.
    fn moved_spans(spans: &[Span]) -> Vec<u64> {
        let folder = std::env::temp_dir();
        let mut finder = MoveFinder::new(&folder);
        finder.add_thread(spans.iter().copied().map(Some)).unwrap();
        let mut found = Vec::new();
        let add = |range: MovedRange| {
            found.extend(range.first..range.end);
            Ok(())
        };
        finder.finish().unwrap().each(add).unwrap();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The spans have more children than the finder counts, so the longer span stays.
    #[test]
    fn the_shorter_of_two_spans_with_very_many_children_moves() {
        let count = MAX_AHEAD as i64 + 1_000;
        let children =
            |from: i64, count: i64| (0..count).map(move |nth| (from + 2 * nth, from + 2 * nth + 1));
        let mut spans = vec![(0, 2 * count + 3)];
        spans.extend(children(1, count));
        spans.push((2 * count + 2, 20 * count));
        spans.extend(children(2 * count + 4, 3 * count));
        let moved: Vec<u64> = (0..=count.unsigned_abs()).collect();
        assert_eq!(moved_spans(&spans), moved);
    }
}
