//! A stack of the spans that are open on one row. Each span contains the next one.
//!
//! The merge's rows, the tables and the report all nest spans with it. Spans have to be pushed sorted by begin, and the longest first if several begin
//! together. Viewers process them in the same order.

use std::collections::VecDeque;

/// The end of a span that has none.
pub const UNFINISHED: i64 = i64::MAX;

/// A span on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSpan<T> {
    /// When it begins, in ns.
    pub start_ns: i64,
    /// When it ends, in ns, or [`UNFINISHED`].
    pub end_ns: i64,
    /// Data of the caller.
    pub value: T,
}

/// The open spans of one row, the outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanStack<T>(VecDeque<OpenSpan<T>>);

impl<T> Default for SpanStack<T> {
    fn default() -> Self {
        SpanStack(VecDeque::new())
    }
}

impl<T> SpanStack<T> {
    /// Returns how many spans are open.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if no span is open.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the innermost open span, which is the parent of the next one.
    pub fn innermost(&self) -> Option<&OpenSpan<T>> {
        self.0.back()
    }

    /// Returns the innermost open span mutably.
    pub fn innermost_mut(&mut self) -> Option<&mut OpenSpan<T>> {
        self.0.back_mut()
    }

    /// Returns the open span at a depth. The outermost one has depth 0.
    pub fn get(&self, depth: usize) -> Option<&OpenSpan<T>> {
        self.0.get(depth)
    }

    /// Returns all open spans, the outermost first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &OpenSpan<T>> + ExactSizeIterator {
        self.0.iter()
    }

    /// Removes and returns the innermost span if it has ended by `ns`. Callers repeat this until it returns `None`.
    pub fn pop_ended(&mut self, ns: i64) -> Option<OpenSpan<T>> {
        self.0.pop_back_if(|innermost| innermost.end_ns <= ns)
    }

    /// Adds a span without a check.
    pub fn push(&mut self, span: OpenSpan<T>) {
        self.0.push_back(span);
    }

    /// Adds a span and returns its depth, or `None` if it clashes with an open one. Spans that begin together may be added in any order: the longest contains
    /// the others.
    pub fn insert(&mut self, span: OpenSpan<T>) -> Option<usize> {
        let contains =
            |open: &OpenSpan<T>| open.start_ns < span.start_ns || open.end_ns >= span.end_ns;
        let depth = self.0.iter().rposition(contains).map_or(0, |at| at + 1);
        if depth > 0 && self.0[depth - 1].end_ns < span.end_ns {
            return None;
        }
        self.0.insert(depth, span);
        Some(depth)
    }

    /// Returns the depth of the outermost span that ends before `end_ns`. A span that begins now and ends at `end_ns` clashes with all from this depth on.
    pub fn first_before(&self, end_ns: i64) -> Option<usize> {
        let depth = self.0.partition_point(|open| open.end_ns >= end_ns);
        (depth < self.0.len()).then_some(depth)
    }

    /// Returns the innermost open span that ends no earlier than `end_ns`. It is the parent of a span that begins now and ends then.
    pub fn parent(&self, end_ns: i64) -> Option<&OpenSpan<T>> {
        let depth = self.first_before(end_ns).unwrap_or(self.len());
        self.get(depth.checked_sub(1)?)
    }

    /// Sets the end of the last unfinished span that began at `start_ns`, and returns its depth. The span stays on the stack.
    pub fn end(&mut self, start_ns: i64, end_ns: i64) -> Option<usize> {
        let first = self.0.partition_point(|open| open.start_ns < start_ns);
        let after = self.0.partition_point(|open| open.start_ns <= start_ns);
        let is_open = |depth: &usize| self.0[*depth].end_ns == UNFINISHED;
        let depth = (first..after).rev().find(is_open)?;
        self.0[depth].end_ns = end_ns;
        Some(depth)
    }

    /// Removes the spans from a depth on.
    pub fn truncate(&mut self, depth: usize) {
        self.0.truncate(depth);
    }

    /// Removes and returns the outermost span, for callers that limit the depth.
    pub fn pop_outermost(&mut self) -> Option<OpenSpan<T>> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start_ns: i64, end_ns: i64) -> OpenSpan<()> {
        OpenSpan {
            start_ns,
            end_ns,
            value: (),
        }
    }

    fn ends(stack: &SpanStack<()>) -> Vec<i64> {
        stack.iter().map(|open| open.end_ns).collect()
    }

    #[test]
    fn ended_spans_are_removed_from_the_inside_out() {
        let mut stack = SpanStack::default();
        for end_ns in [100, 40, 20] {
            stack.push(span(0, end_ns));
        }
        assert_eq!(stack.pop_ended(19), None);
        assert_eq!(stack.pop_ended(40), Some(span(0, 20)));
        assert_eq!(stack.pop_ended(40), Some(span(0, 40)));
        assert_eq!(stack.pop_ended(40), None);
        assert_eq!(ends(&stack), [100]);
    }

    #[test]
    fn of_spans_that_begin_together_the_longest_contains_the_others() {
        let mut stack = SpanStack::default();
        assert_eq!(stack.insert(span(0, 100)), Some(0));
        assert_eq!(stack.insert(span(5, 20)), Some(1));
        assert_eq!(stack.insert(span(5, 50)), Some(1));
        assert_eq!(stack.insert(span(5, 20)), Some(3));
        assert_eq!(ends(&stack), [100, 50, 20, 20]);
        assert_eq!(stack.insert(span(6, 21)), None, "clashes");
        assert_eq!(stack.len(), 4);
    }

    #[test]
    fn a_clash_is_with_all_from_a_depth_on_and_the_parent_is_above() {
        let mut stack = SpanStack::default();
        assert_eq!(stack.first_before(UNFINISHED), None);
        for end_ns in [UNFINISHED, 100, 40, 20] {
            stack.push(span(0, end_ns));
        }
        let found = [20, 21, 40, 41, 100, 101].map(|end_ns| stack.first_before(end_ns));
        assert_eq!(
            found,
            [None, Some(3), Some(3), Some(2), Some(2), Some(1)],
            "touching ends do not clash"
        );
        let found = [20, 21, 100, 101].map(|end_ns| stack.parent(end_ns).map(|open| open.end_ns));
        assert_eq!(found, [20, 40, 100, UNFINISHED].map(Some));
        assert_eq!(SpanStack::<()>::default().parent(20), None);
    }

    #[test]
    fn the_last_span_that_began_then_is_ended() {
        let mut stack = SpanStack::default();
        for start_ns in [0, 5, 5, 9] {
            stack.push(span(start_ns, UNFINISHED));
        }
        assert_eq!(stack.end(5, 30), Some(2));
        assert_eq!(stack.end(5, 40), Some(1));
        assert_eq!(stack.end(5, 50), None);
        assert_eq!(stack.end(7, 50), None);
        assert_eq!(ends(&stack), [UNFINISHED, 40, 30, UNFINISHED]);
    }
}
