//! Decides from the chunks of a thread, read in order, if its spans nest. The memory for this is
//! bounded, whatever the number of spans.
//!
//! If spans are in the order of their ends, a span can only overlap spans that ended since it
//! began. So the outermost spans that ended last are stored one by one, and older ones are joined
//! into ranges of time. If a later span begins within such a range, the thread stays undecided, and
//! its spans are read again. If spans are in the order of their begins, the open spans are enough.

use crate::summary::chunk_summary::RecordedThread;
use crate::summary::nesting::{Nesting, Order, Span};
use std::collections::HashMap;

/// Outermost spans that are stored one by one: for all threads together, and the bounds for a
/// single thread.
const REMEMBERED: usize = 1 << 16;
const REMEMBERED_PER_THREAD: (usize, usize) = (4, 4096);
/// Minimum and maximum number of ranges of older spans. There are no more ranges than single spans.
const OLDER_RANGES: (usize, usize) = (8, 64);
/// Maximum number of spans of a thread that may be open at once.
const OPEN: usize = 1024;
/// Maximum number of open and unfinished spans of all threads together.
const ALL_OPEN: usize = 1 << 18;

/// Spans of one thread in all chunks so far.
#[derive(Debug, Default)]
struct History {
    order: Order,
    /// Outermost spans, and ranges of older ones. Used unless the order is by begin.
    recent: Vec<Span>,
    older: Vec<Span>,
    /// Spans that are still open when the last span begins. Used if the order is by begin.
    open: Vec<Span>,
    last_start: Option<i64>,
    last_end: Option<i64>,
    unfinished: Vec<i64>,
}

impl History {
    /// Adds the spans of the next chunk. `room` is the number of outermost spans that may be stored
    /// one by one.
    fn append(&mut self, later: &Nesting, room: usize) {
        if self.order == Order::Unclear {
            return;
        }
        self.unfinished.extend_from_slice(&later.unfinished);
        self.order = self.order_with(later);
        let nests = match self.order {
            Order::Unclear => false,
            Order::ByBegin => self.append_by_begin(later),
            Order::Apart | Order::ByEnd => self.append_by_end(later, room),
        };
        if !nests || self.open() > OPEN {
            self.mark_unclear();
        }
    }

    /// Returns the number of stored spans that are unfinished or still open.
    fn open(&self) -> usize {
        self.unfinished.len() + self.open.len()
    }

    /// Marks the thread as undecided, so that its spans are read again.
    fn mark_unclear(&mut self) {
        *self = History {
            order: Order::Unclear,
            ..History::default()
        };
    }

    /// Returns the order of all spans so far and those of the next chunk.
    fn order_with(&self, later: &Nesting) -> Order {
        let two = match (self.recent.last(), later.outermost.first()) {
            (Some(last), Some(first)) if first.0 < last.1 => Order::from_pair(*last, *first),
            _ => Order::Apart,
        };
        let both = |one: Order, other: Order| match (one, other) {
            (Order::Apart, order) | (order, Order::Apart) => order,
            (one, other) if one == other => one,
            _ => Order::Unclear,
        };
        // Once known, an order does not change. If the chunk does not fit, adding it fails.
        match self.order {
            Order::Apart => both(two, later.order),
            order => both(order, later.order),
        }
    }

    fn append_by_end(&mut self, later: &Nesting, room: usize) -> bool {
        let Some(last) = later.outermost.last() else {
            return true;
        };
        let back = later.early_spans();
        if back
            .first()
            .is_some_and(|first| Some(first.1) < self.last_end)
        {
            return false;
        }
        if !back.iter().all(|span| self.make_room(*span)) {
            return false;
        }
        self.last_end = Some(last.1);
        self.recent.extend_from_slice(&later.outermost);
        if self.recent.len() > 2 * room {
            self.join_older(room);
        }
        true
    }

    /// Removes the outermost spans that are inside `span`, which ends now. Returns false if `span`
    /// overlaps another span, or may do so.
    fn make_room(&mut self, span: Span) -> bool {
        for ended in [&mut self.recent, &mut self.older] {
            while let Some(last) = ended.last() {
                if last.0 < span.0 {
                    return last.1 <= span.0;
                }
                ended.pop();
            }
        }
        true
    }

    /// Keeps `room` outermost spans, and joins all older ones into a range.
    fn join_older(&mut self, room: usize) {
        let count = self.recent.len() - room;
        let mut forgotten = self.recent.drain(..count);
        let Some(first) = forgotten.next() else {
            return;
        };
        let last = forgotten.next_back().unwrap_or(first);
        drop(forgotten);
        self.recent.shrink_to(2 * room);
        self.older.push((first.0, last.1));
        if self.older.len() > room.clamp(OLDER_RANGES.0, OLDER_RANGES.1) {
            let pairs = self.older.chunks(2);
            let joined = pairs.map(|pair| (pair[0].0, pair[pair.len() - 1].1));
            self.older = joined.collect();
        }
    }

    fn append_by_begin(&mut self, later: &Nesting) -> bool {
        if let Some(last) = self.recent.last() {
            (self.open, self.last_start) = (vec![*last], Some(last.0));
            (self.recent, self.older) = (Vec::new(), Vec::new());
        }
        let Some(first) = later.outermost.first() else {
            return true;
        };
        if Some(first.0) < self.last_start {
            return false;
        }
        // An open span must not end within an outermost span of the chunk.
        let is_crossed = |open: &Span| {
            let before = later.outermost.partition_point(|span| span.0 < open.1);
            before > 0 && later.outermost[before - 1].1 > open.1
        };
        if self.open.iter().any(is_crossed) {
            return false;
        }
        self.last_start = Some(later.last_start());
        self.open.retain(|open| open.1 > later.last_start());
        self.open.extend(later.open());
        true
    }

    /// Returns true if spans may overlap. An unfinished span must not begin inside a span that
    /// ends, not even at its begin: viewers process the unfinished one second.
    fn may_overlap(&self) -> bool {
        let by_begin = self.order == Order::ByBegin && !self.unfinished.is_empty();
        let is_inside = |start: &i64| {
            [&self.recent, &self.older].into_iter().any(|ended| {
                let before = ended.partition_point(|span| span.0 <= *start);
                before > 0 && ended[before - 1].1 > *start
            })
        };
        self.order == Order::Unclear || by_begin || self.unfinished.iter().any(is_inside)
    }
}

/// Spans of all threads of all recordings.
#[derive(Debug, Default)]
pub(crate) struct Histories {
    threads: HashMap<RecordedThread, History>,
    /// Number of open and unfinished spans of all threads.
    open: usize,
}

impl Histories {
    /// Adds the spans of a recording's next chunk.
    pub(crate) fn append(&mut self, recording: usize, nestings: Vec<((i64, i64), Nesting)>) {
        let (least, most) = REMEMBERED_PER_THREAD;
        for (thread, nesting) in nestings {
            let room = (REMEMBERED / (self.threads.len() + 1)).clamp(least, most);
            let history = self.threads.entry((recording, thread)).or_default();
            self.open -= history.open();
            history.append(&nesting, room);
            if self.open + history.open() > ALL_OPEN {
                history.mark_unclear();
            }
            self.open += history.open();
        }
    }

    /// Returns an entry for each thread with spans: true if its spans may overlap without nesting.
    pub(crate) fn into_overlaps(self) -> HashMap<RecordedThread, bool> {
        let threads = self.threads.into_iter();
        threads
            .map(|(thread, history)| (thread, history.may_overlap()))
            .collect()
    }
}

#[cfg(test)]
mod tests;
