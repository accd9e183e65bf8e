//! Checks that the spans of a thread nest, one chunk of lines at a time.
//!
//! Viewers drop a span that overlaps another one of its thread without containing it or being contained. Recorders write spans in the order of their
//! ends or of their begins. In both cases a few spans determine how the others nest with their surroundings, and [`Nesting`] keeps only these.

use crate::base::span_stack::{OpenSpan, SpanStack};

/// Begin and end in ns.
pub type Span = (i64, i64);

/// Maximum number of unfinished spans of a thread that are examined.
const UNFINISHED: usize = 1024;

/// Order of the spans of a thread in a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// No span begins before the previous one has ended.
    #[default]
    Apart,
    /// Each span ends no earlier than the previous one, and therefore after all spans that it contains.
    ByEnd,
    /// Each span begins no earlier than the previous one, and therefore after all spans that contain it.
    ByBegin,
    /// Some spans overlap, or they are in no order.
    Unclear,
}

impl Order {
    /// Returns the order of two spans that follow each other in the chunk, where `next` begins before `one` has ended.
    pub fn from_pair(one: Span, next: Span) -> Order {
        match (next.0 <= one.0, next.1 >= one.1) {
            (true, true) if one == next => Order::Apart,
            (true, true) => Order::ByEnd,
            _ if next.0 >= one.0 && next.1 <= one.1 => Order::ByBegin,
            _ => Order::Unclear,
        }
    }
}

/// Nesting of the spans of one thread in a chunk of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nesting {
    /// Order of the spans.
    pub order: Order,
    /// Spans that no other span contains, in order of time.
    pub outermost: Vec<Span>,
    /// Spans that began before the first one ended, sorted by end, innermost first.
    chain: Vec<Span>,
    /// Spans that are open when the last one begins, sorted by begin.
    open: SpanStack<()>,
    /// Begins of the spans that never ended.
    pub unfinished: Vec<i64>,
    /// Begin of the last span; `None` before the first one.
    last_start: Option<i64>,
    last_end: Option<i64>,
}

impl Nesting {
    /// Adds the next span of the thread that has an end. Spans come in the order of the lines.
    #[inline]
    pub fn add(&mut self, span: Span) {
        if Some(span.0) >= self.last_end && self.order != Order::ByBegin {
            self.last_end = Some(span.1);
            return self.outermost.push(span);
        }
        self.add_overlapping(span);
    }

    /// Adds a span of the thread that never ended. `start` is its begin in ns.
    pub fn add_unfinished(&mut self, start: i64) {
        self.unfinished.push(start);
        if self.unfinished.len() > UNFINISHED {
            self.mark_unclear();
        }
    }

    /// Returns true if any span, or any begin or end of one, was added.
    pub fn has_spans(&self) -> bool {
        self.order != Order::Apart || !self.outermost.is_empty() || !self.unfinished.is_empty()
    }

    /// Discards the spans of the thread and sets their order to [`Order::Unclear`]. A later step then examines all of them.
    pub fn mark_unclear(&mut self) {
        *self = Nesting {
            order: Order::Unclear,
            last_end: Some(i64::MAX),
            ..Nesting::default()
        };
    }

    /// Returns the spans that began before the chunk's first span ended. They may enclose or overlap spans of the chunk before.
    pub fn early_spans(&self) -> &[Span] {
        match self.order {
            Order::ByEnd => &self.chain,
            _ => &self.outermost[..self.outermost.len().min(1)],
        }
    }

    /// Returns the spans that are open when the chunk's last span begins, including that one. They may enclose or overlap spans of the next
    /// chunk.
    pub fn open(&self) -> impl Iterator<Item = Span> {
        let last = match self.order {
            Order::ByBegin => None,
            _ => self.outermost.last().copied(),
        };
        let open = self.open.iter().map(|open| (open.start_ns, open.end_ns));
        open.chain(last)
    }

    /// Returns the begin, in ns, of the last outermost span, or of the very last span if the spans are sorted by begin. Without spans, returns
    /// `i64::MIN`.
    pub fn last_start(&self) -> i64 {
        match self.order {
            Order::ByBegin => self.last_start.unwrap_or(i64::MIN),
            _ => self.outermost.last().map_or(i64::MIN, |last| last.0),
        }
    }

    /// Adds a span that begins before the last span has ended, or any span if the spans are sorted by begin. Determines the order at the first
    /// such span.
    fn add_overlapping(&mut self, span: Span) {
        if self.order == Order::Apart
            && let (Some(first), Some(last)) = (self.outermost.first(), self.outermost.last())
        {
            self.order = Order::from_pair(*last, span);
            self.last_start = Some(last.0);
            match self.order {
                Order::ByEnd => self.chain.push(*first),
                Order::ByBegin => self.open.push(open_span(*last)),
                Order::Apart | Order::Unclear => {}
            }
        }
        let nests = match self.order {
            Order::Apart => true, // the same span again
            Order::ByEnd => self.add_by_end(span),
            Order::ByBegin => self.add_by_begin(span),
            Order::Unclear => false,
        };
        if !nests {
            self.mark_unclear();
        }
    }

    /// Adds the next span of a thread whose spans are sorted by end. It replaces the outermost spans that it contains. Returns false if it does
    /// not nest with the others. It must not overlap the outermost span before them, even if both end together, because it could cut a span
    /// inside of that one.
    fn add_by_end(&mut self, span: Span) -> bool {
        if Some(span.1) < self.last_end {
            return false;
        }
        while let Some(last) = self.outermost.last() {
            if last.0 < span.0 {
                if last.1 > span.0 {
                    return false;
                }
                break;
            }
            self.outermost.pop();
        }
        if self.chain.first().is_some_and(|first| span.0 < first.1) {
            self.chain.push(span);
        }
        self.outermost.push(span);
        self.last_end = Some(span.1);
        true
    }

    /// Adds the next span of a thread whose spans are sorted by begin. Returns false if it begins before the previous one or overlaps an open
    /// span without nesting. Of spans that begin together, the longest contains the others, whatever their order.
    fn add_by_begin(&mut self, span: Span) -> bool {
        if Some(span.0) < self.last_start {
            return false;
        }
        self.last_start = Some(span.0);
        while self.open.pop_ended(span.0).is_some() {}
        let depth = self.open.insert(open_span(span));
        if depth == Some(0) {
            if self.open.len() > 1 {
                self.outermost.pop();
            }
            self.outermost.push(span);
        }
        depth.is_some()
    }
}

/// Converts a span to an entry for a [`SpanStack`].
fn open_span((start_ns, end_ns): Span) -> OpenSpan<()> {
    OpenSpan {
        start_ns,
        end_ns,
        value: (),
    }
}
