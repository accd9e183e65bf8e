//! A stack of the spans that are open on one track. Each span contains the next one.
//!
//! The merge's lanes, the tables and the report all nest spans with it. Spans have to be pushed sorted by begin, and the longest first if several begin
//! together. Viewers process them in the same order.

use std::collections::VecDeque;

/// End of a span that has no end.
pub const UNFINISHED: i64 = i64::MAX;

/// A span on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSpan<T> {
    /// Begin in ns.
    pub start_ns: i64,
    /// End in ns, or [`UNFINISHED`].
    pub end_ns: i64,
    /// Data of the caller.
    pub value: T,
}

/// Open spans of one track, the outermost first.
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

    /// Adds a span without checking that it fits into the others.
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

    /// Keeps only the outermost `depth` spans on the stack, and removes the ones inside them.
    pub fn truncate(&mut self, depth: usize) {
        self.0.truncate(depth);
    }

    /// Removes and returns the outermost span, for callers that limit the depth.
    pub fn pop_outermost(&mut self) -> Option<OpenSpan<T>> {
        self.0.pop_front()
    }
}
