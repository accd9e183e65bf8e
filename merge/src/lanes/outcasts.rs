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
use crate::lanes::rows::OPEN;
use crate::store::sorter::{Record, Sorted, Sorter};
use crate::summary::nesting::Span;
use std::io;
use std::path::Path;

/// Maximum number of later spans to read ahead, and so the maximum number of children that are
/// counted.
const AHEAD: usize = 1 << 14;
/// Number of later spans that may be compared for each span that is assigned. Without this limit,
/// spans that all clash would take quadratic time.
const COMPARED: usize = 16;
/// Number of events other than spans that count as one comparison.
const POINTS: usize = 64;
/// Maximum number of open spans on other lanes. Their children move with them.
const AWAY: usize = 512;

/// Spans that move. Their numbers are consecutive, and count all spans that the finder gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OutcastRange {
    pub(crate) first: u64,
    /// One past the last number.
    pub(crate) end: u64,
}

impl Record for OutcastRange {}

/// A span on the thread's own lane.
#[derive(Clone, Copy, Debug)]
struct OwnSpan {
    number: u64,
    /// Number of spans that the lane had before it.
    before: u64,
}

/// Finds the spans that leave their threads' own lanes.
pub(crate) struct OutcastFinder<'f> {
    outcasts: Sorter<'f, OutcastRange>,
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
    away: SpanStack<u64>,
}

impl<'f> OutcastFinder<'f> {
    /// Creates a finder that spills to files in `folder`.
    pub(crate) fn new(folder: &'f Path) -> OutcastFinder<'f> {
        OutcastFinder {
            outcasts: Sorter::new(folder),
            next: 0,
            comparisons: AHEAD,
            own: SpanStack::default(),
            count: 0,
            away: SpanStack::default(),
        }
    }

    /// Adds all events of a thread, sorted by begin. Events other than spans are `None`.
    pub(crate) fn add_thread(
        &mut self,
        mut events: impl Iterator<Item = Option<Span>> + Clone,
    ) -> io::Result<()> {
        while let Some(event) = events.next() {
            if let Some(span) = event {
                self.place(span, events.clone())?;
            }
        }
        (self.own, self.away) = (SpanStack::default(), SpanStack::default());
        self.comparisons = AHEAD;
        Ok(())
    }

    /// Returns the spans that move, sorted. Ranges may overlap.
    pub(crate) fn finish(self) -> io::Result<Sorted<OutcastRange>> {
        self.outcasts.finish()
    }

    /// Assigns a span, which is followed by the `later` events.
    fn place(&mut self, span: Span, later: impl Iterator<Item = Option<Span>>) -> io::Result<()> {
        let (number, (start, end)) = (self.next, span);
        self.next += 1;
        self.comparisons += COMPARED;
        while self.own.pop_ended(start).is_some() {}
        while self.away.pop_ended(start).is_some() {}
        let stays = match self.own.first_before(end) {
            _ if self.parent_is_away(end) => false,
            Some(depth) => self.casts_out(depth, span, later)?,
            None => true,
        };
        match stays {
            true => self.add_own(number, span),
            false => {
                let end = number + 1;
                self.outcasts.push(OutcastRange { first: number, end })?;
                self.add_away(number, span);
            }
        }
        Ok(())
    }

    /// Returns true if the parent of a span with this end is on another lane.
    fn parent_is_away(&self, end: i64) -> bool {
        let own = self.own.parent(end).map(|open| open.value.number);
        self.away.parent(end).map(|open| open.value) > own
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
        if self.own.len() > OPEN {
            self.own.pop_outermost();
        }
        self.count += 1;
    }

    fn add_away(&mut self, number: u64, (start_ns, end_ns): Span) {
        if end_ns == UNFINISHED {
            return;
        }
        while self.away.pop_ended(end_ns).is_some() {}
        self.away.push(OpenSpan {
            start_ns,
            end_ns,
            value: number,
        });
        if self.away.len() > AWAY {
            self.away.pop_outermost();
        }
    }

    /// Moves the spans from a depth on to another lane if the new span stays instead of them.
    /// Returns true if it does.
    fn casts_out(
        &mut self,
        depth: usize,
        span: Span,
        later: impl Iterator<Item = Option<Span>>,
    ) -> io::Result<bool> {
        let Some(outcast) = self.own.get(depth).copied() else {
            return Ok(false);
        };
        if span.1 == UNFINISHED || !self.outweighs(span, &outcast, later) {
            return Ok(false);
        }
        // All spans that the lane has had since then are children of the outcast.
        let first = outcast.value.number;
        let end = self.next - 1;
        self.outcasts.push(OutcastRange { first, end })?;
        let gone = self.own.iter().skip(depth);
        let gone = gone.map(|open| (open.value.number, (open.start_ns, open.end_ns)));
        let mut away: Vec<(u64, Span)> = gone.collect();
        while self.away.innermost().is_some_and(|open| open.value > first) {
            let later = self.away.pop_ended(UNFINISHED);
            away.extend(later.map(|open| (open.value, (open.start_ns, open.end_ns))));
        }
        away.sort_unstable();
        for (number, span) in away {
            self.add_away(number, span);
        }
        self.own.truncate(depth);
        self.count = outcast.value.before;
        Ok(true)
    }

    /// Returns true if a new span has more children than an open one. If the numbers are equal or
    /// too large to be counted, the longer span wins. A new span that also clashes with a later one
    /// needs more children: if it moves, both clashes are resolved.
    fn outweighs(
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
                && (start >= end || compared == AHEAD)
            {
                break;
            }
            if self.comparisons == 0 {
                return is_longer;
            }
            let Some(next) = next else {
                points += 1;
                self.comparisons -= usize::from(points % POINTS == 0);
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
        match compared < AHEAD {
            true => wins_tie(in_new, clashes),
            false => is_longer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers of the spans that move, for sorted spans of a thread.
    fn outcasts(spans: &[Span]) -> Vec<u64> {
        let folder = std::env::temp_dir();
        let mut finder = OutcastFinder::new(&folder);
        finder.add_thread(spans.iter().copied().map(Some)).unwrap();
        let mut found = Vec::new();
        let add = |range: OutcastRange| {
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
    fn of_two_spans_with_very_many_children_the_shorter_one_moves() {
        let count = AHEAD as i64 + 1_000;
        let children =
            |from: i64, count: i64| (0..count).map(move |nth| (from + 2 * nth, from + 2 * nth + 1));
        let mut spans = vec![(0, 2 * count + 3)];
        spans.extend(children(1, count));
        spans.push((2 * count + 2, 20 * count));
        spans.extend(children(2 * count + 4, 3 * count));
        let moved: Vec<u64> = (0..=count.unsigned_abs()).collect();
        assert_eq!(outcasts(&spans), moved);
    }
}
