//! Whether the spans of a thread nest, told from its chunks one after the other, in little memory however many there are.
//!
//! By end, a span can only overlap what ended since it began: the outermost spans that ended last are kept, and of older ones where
//! they lie. If a span begins among those, whether it cuts one is a [`Question`] to the few chunks that they came from. By begin, what
//! is open is enough.

use crate::pass::nesting::{Nesting, Order, Span};
use crate::pass::thread::RecordedThread;
use crate::pass::verdict::{Question, Verdict};
use std::collections::HashMap;
use std::ops::Range;

/// Outermost spans remembered one by one: of all threads together, and the bounds for one of them.
const REMEMBERED: usize = 1 << 16;
const OF_THREAD: (usize, usize) = (4, 4096);
/// Stretches of older ones remembered, but no more than spans are.
const STRETCHES: (usize, usize) = (8, 64);
/// Spans of a thread that may be open at once.
const OPEN: usize = 1024;
/// Questions that each thread may have, even if there is little room.
const QUESTIONS: usize = 64;
/// Questions of all threads together; a thread with more is looked at closely, which costs less than to ask them.
const ALL_QUESTIONS: usize = 1 << 14;
/// Open and unfinished spans of all threads together.
const ALL_OPEN: usize = 1 << 18;

/// An outermost span and the chunk it is in.
#[derive(Clone, Copy, Debug)]
struct EndedSpan {
    span: Span,
    chunk: usize,
}

/// Outermost spans of which only the first begin and the last end are known.
#[derive(Clone, Debug)]
struct SpanStretch {
    span: Span,
    chunks: Range<usize>,
}

/// The spans of one thread in all chunks so far.
#[derive(Debug)]
struct History {
    order: Order,
    /// By end or apart: the outermost ones, older ones in stretches.
    recent: Vec<EndedSpan>,
    older: Vec<SpanStretch>,
    /// By begin: those that are open when the last one begins.
    open: Vec<Span>,
    last_start: i64,
    last_end: i64,
    unfinished: Vec<i64>,
    /// A begin and an end, and where to look for what the span may cut.
    questions: Vec<(Span, Range<usize>)>,
}

impl Default for History {
    fn default() -> Self {
        History {
            order: Order::Apart,
            recent: Vec::new(),
            older: Vec::new(),
            open: Vec::new(),
            last_start: i64::MIN,
            last_end: i64::MIN,
            unfinished: Vec::new(),
            questions: Vec::new(),
        }
    }
}

impl History {
    /// Adds what the next chunk holds; `room` is how many outermost spans may be remembered.
    fn append(&mut self, later: Nesting, chunk: usize, room: usize) {
        if self.order == Order::Unclear {
            return;
        }
        self.unfinished.extend_from_slice(&later.unfinished);
        self.order = self.order_with(&later);
        let nests = match self.order {
            Order::Unclear => false,
            Order::ByBegin => self.append_by_begin(&later),
            Order::Apart | Order::ByEnd => self.append_by_end(&later, chunk, room),
        };
        if !nests || self.open() > OPEN {
            self.give_up();
        }
    }

    /// How many spans are remembered that have not ended, or not yet.
    fn open(&self) -> usize {
        self.unfinished.len() + self.open.len()
    }

    /// Says that a closer look is needed.
    fn give_up(&mut self) {
        *self = History {
            order: Order::Unclear,
            ..History::default()
        };
    }

    /// The order of all there is, with what the next chunk holds.
    fn order_with(&self, later: &Nesting) -> Order {
        let two = match (self.recent.last(), later.outermost.first()) {
            (Some(last), Some(first)) if first.0 < last.span.1 => Order::of_two(last.span, *first),
            _ => Order::Apart,
        };
        let both = |one: Order, other: Order| match (one, other) {
            (Order::Apart, order) | (order, Order::Apart) => order,
            (one, other) if one == other => one,
            _ => Order::Unclear,
        };
        // An order once known stays; whether the chunk fits in is seen when it is added.
        match self.order {
            Order::Apart => both(two, later.order),
            order => both(order, later.order),
        }
    }

    fn append_by_end(&mut self, later: &Nesting, chunk: usize, room: usize) -> bool {
        let Some(last) = later.outermost.last() else {
            return true;
        };
        let back = later.reaching_back();
        if back.first().is_some_and(|first| first.1 < self.last_end) {
            return false;
        }
        if !back.iter().all(|span| self.make_room(*span, room)) {
            return false;
        }
        self.last_end = last.1;
        let ended = later
            .outermost
            .iter()
            .map(|span| EndedSpan { span: *span, chunk });
        self.recent.extend(ended);
        if self.recent.len() > 2 * room {
            self.forget(room);
        }
        true
    }

    /// Takes the outermost spans away that one that ends now holds, as within a chunk.
    fn make_room(&mut self, span: Span, room: usize) -> bool {
        while let Some(last) = self.recent.last() {
            if last.span.0 < span.0 {
                return last.span.1 <= span.0;
            }
            self.recent.pop();
        }
        while let Some(last) = self.older.last_mut() {
            if last.span.0 < span.0 {
                if last.span.1 > span.0 {
                    self.questions.push((span, last.chunks.clone()));
                    last.span.1 = span.0;
                }
                break;
            }
            self.older.pop();
        }
        self.questions.len() <= room.max(QUESTIONS)
    }

    /// Remembers only `room` outermost spans one by one.
    fn forget(&mut self, room: usize) {
        let count = self.recent.len() - room;
        let mut forgotten = self.recent.drain(..count);
        let Some(first) = forgotten.next() else {
            return;
        };
        let last = forgotten.next_back().unwrap_or(first);
        drop(forgotten);
        self.recent.shrink_to(2 * room);
        self.older.push(SpanStretch {
            span: (first.span.0, last.span.1),
            chunks: first.chunk..last.chunk + 1,
        });
        if self.older.len() > room.clamp(STRETCHES.0, STRETCHES.1) {
            let pairs = self.older.chunks(2).map(|pair| SpanStretch {
                span: (pair[0].span.0, pair[pair.len() - 1].span.1),
                chunks: pair[0].chunks.start..pair[pair.len() - 1].chunks.end,
            });
            self.older = pairs.collect();
        }
    }

    fn append_by_begin(&mut self, later: &Nesting) -> bool {
        if let Some(last) = self.recent.last() {
            (self.open, self.last_start) = (vec![last.span], last.span.0);
            (self.recent, self.older) = (Vec::new(), Vec::new());
        }
        let Some(first) = later.outermost.first() else {
            return true;
        };
        if first.0 < self.last_start {
            return false;
        }
        // What is open must not end within an outermost span of the chunk.
        let is_cut = |open: &Span| {
            let before = later.outermost.partition_point(|span| span.0 < open.1);
            before > 0 && later.outermost[before - 1].1 > open.1
        };
        if self.open.iter().any(is_cut) {
            return false;
        }
        self.last_start = later.last_start();
        self.open.retain(|open| open.1 > later.last_start());
        self.open.extend(later.open());
        true
    }

    /// What is known at last. An unfinished span is never held by one that ends, also if both begin together: viewers take it second.
    fn verdict(self, place: RecordedThread) -> Verdict {
        let by_begin = self.order == Order::ByBegin && !self.unfinished.is_empty();
        if self.order == Order::Unclear || by_begin {
            return Verdict::MayOverlap;
        }
        let of_span = |(span, chunks)| Question::of_span(place, chunks, span);
        let mut questions: Vec<Question> = self.questions.into_iter().map(of_span).collect();
        for start in self.unfinished {
            let before = self.recent.partition_point(|ended| ended.span.0 <= start);
            if before > 0 && self.recent[before - 1].span.1 > start {
                return Verdict::MayOverlap;
            }
            let before = self.older.partition_point(|older| older.span.0 <= start);
            if before > 0 && self.older[before - 1].span.1 > start {
                let chunks = self.older[before - 1].chunks.clone();
                questions.push(Question::of_unfinished(place, chunks, start));
            }
        }
        Verdict::Nest(questions)
    }
}

/// The spans of all threads of all recordings.
#[derive(Debug, Default)]
pub(crate) struct Histories {
    threads: HashMap<RecordedThread, History>,
    /// Of all threads.
    questions: usize,
    open: usize,
}

impl Histories {
    /// Adds what the next chunk of a recording holds.
    pub(crate) fn append(
        &mut self,
        recording: usize,
        chunk: usize,
        nestings: Vec<((i64, i64), Nesting)>,
    ) {
        let (least, most) = OF_THREAD;
        for (thread, nesting) in nestings {
            let room = (REMEMBERED / (self.threads.len() + 1)).clamp(least, most);
            let history = self.threads.entry((recording, thread)).or_default();
            self.questions -= history.questions.len();
            self.open -= history.open();
            history.append(nesting, chunk, room);
            let asks_too_much = self.questions + history.questions.len() > ALL_QUESTIONS;
            if asks_too_much || self.open + history.open() > ALL_OPEN {
                history.give_up();
            }
            self.questions += history.questions.len();
            self.open += history.open();
        }
    }

    /// What is known of each.
    pub(crate) fn verdicts(self) -> HashMap<RecordedThread, Verdict> {
        let mut asked = 0;
        let verdict = |(place, history): (RecordedThread, History)| {
            let verdict = history.verdict(place);
            let asks = verdict.questions().len();
            asked += asks;
            if asks > 0 && asked > ALL_QUESTIONS {
                return (place, Verdict::MayOverlap);
            }
            (place, verdict)
        };
        let mut threads: Vec<_> = self.threads.into_iter().collect();
        threads.sort_unstable_by_key(|(place, _)| *place);
        threads.into_iter().map(verdict).collect()
    }
}

#[cfg(test)]
mod tests;
