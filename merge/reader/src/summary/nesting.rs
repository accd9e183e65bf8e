//! Whether the spans of a thread nest, as far as one chunk of lines tells.
//!
//! Viewers drop a span that overlaps another of its thread without one holding the other. Recorders write spans when they end, or
//! else by their begin. In either order a few spans say all about those around them, and that is what [`Nesting`] keeps.

use crate::base::span_stack::{OpenSpan, SpanStack};

/// Begin and end in ns.
pub type Span = (i64, i64);

/// Unfinished spans of a thread that are looked at.
const UNFINISHED: usize = 1024;

/// The order in which spans stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// None begins before the one before it has ended.
    #[default]
    Apart,
    /// Each ends no earlier than the one before it, and so after all that it holds.
    ByEnd,
    /// Each begins no earlier than the one before it, and so after all that hold it.
    ByBegin,
    /// Some overlap, or they stand in no order.
    Unclear,
}

impl Order {
    /// The order of a span and of the next one, which begins before it has ended.
    pub fn of_two(one: Span, next: Span) -> Order {
        match (next.0 <= one.0, next.1 >= one.1) {
            (true, true) if one == next => Order::Apart,
            (true, true) => Order::ByEnd,
            _ if next.0 >= one.0 && next.1 <= one.1 => Order::ByBegin,
            _ => Order::Unclear,
        }
    }
}

/// The spans of one thread in a chunk of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nesting {
    /// Order of the spans.
    pub order: Order,
    /// Those that no other holds, one after the other.
    pub outermost: Vec<Span>,
    /// Sorted by end: spans that began before the first one ended, innermost first.
    chain: Vec<Span>,
    /// Sorted by begin: spans that are open when the last one begins.
    open: SpanStack<()>,
    /// When those began that never ended.
    pub unfinished: Vec<i64>,
    /// `None` is before all times.
    last_start: Option<i64>,
    last_end: Option<i64>,
}

impl Nesting {
    /// Adds the next span.
    #[inline]
    pub fn add(&mut self, span: Span) {
        if Some(span.0) >= self.last_end && self.order != Order::ByBegin {
            self.last_end = Some(span.1);
            return self.outermost.push(span);
        }
        self.add_overlapping(span);
    }

    /// Adds a span without an end.
    pub fn add_unfinished(&mut self, start: i64) {
        self.unfinished.push(start);
        if self.unfinished.len() > UNFINISHED {
            self.give_up();
        }
    }

    /// Whether it has anything to say.
    pub fn has_spans(&self) -> bool {
        self.order != Order::Apart || !self.outermost.is_empty() || !self.unfinished.is_empty()
    }

    /// Says that a closer look is needed.
    pub fn give_up(&mut self) {
        *self = Nesting {
            order: Order::Unclear,
            last_end: Some(i64::MAX),
            ..Nesting::default()
        };
    }

    /// Those that reach back before the first end.
    pub fn reaching_back(&self) -> &[Span] {
        match self.order {
            Order::ByEnd => &self.chain,
            _ => &self.outermost[..self.outermost.len().min(1)],
        }
    }

    /// Those that are open when the last one begins.
    pub fn open(&self) -> impl Iterator<Item = Span> {
        let last = match self.order {
            Order::ByBegin => None,
            _ => self.outermost.last().copied(),
        };
        let open = self.open.iter().map(|open| (open.start_ns, open.end_ns));
        open.chain(last)
    }

    /// The begin of the last one that began, if they stand by begin or apart.
    pub fn last_start(&self) -> i64 {
        match self.order {
            Order::ByBegin => self.last_start.unwrap_or(i64::MIN),
            _ => self.outermost.last().map_or(i64::MIN, |last| last.0),
        }
    }

    /// Adds a span that begins before the last one has ended, or any one by begin.
    fn add_overlapping(&mut self, span: Span) {
        if self.order == Order::Apart
            && let (Some(first), Some(last)) = (self.outermost.first(), self.outermost.last())
        {
            self.order = Order::of_two(*last, span);
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
            self.give_up();
        }
    }

    /// Takes the outermost spans away that one that ends now holds. The one before them it must not reach into, even if both end
    /// together: what that one holds it may cut.
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

    /// Of those that begin together the longest holds the others, in whatever order they stand.
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

fn open_span((start_ns, end_ns): Span) -> OpenSpan<()> {
    OpenSpan {
        start_ns,
        end_ns,
        value: (),
    }
}
