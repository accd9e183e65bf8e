//! All events in the order of their times: which spans find room on their thread, and which arrows find both ends.
//!
//! This does what Perfetto's importer does with a stack of spans for each thread, its oddities included: an arrow binds to the span
//! that began last, even if that has ended, as long as no other event of the thread has taken it off the stack. Spans that clash are
//! not put on the stack, so that what comes after is compared with what is shown.

use super::arrow::{Arrow, Arrows, Step};
use super::finding::{Findings, Place};
use super::rule::Rule;

/// Spans on one stack; further ones do not go on it.
const DEPTH: usize = 512;

/// What viewers find the begin of a span by; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) name: u64,
    pub(super) cat: u64,
}

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// A span of so many ns; an instant is one of none.
    Span(i64),
    Begin(Words),
    End(Words),
    Arrow(Step, Arrow),
}

/// An event on the timeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) ts: i64,
    /// The place among those of the same time: ends come first, then whole spans, the longest first, then all others.
    pub(super) rank: i64,
    /// None on a track of its own, on which there is always a span.
    pub(super) thread: Option<u32>,
    pub(super) act: Act,
    pub(super) place: Place,
}

impl Item {
    /// A span comes before the arrow that it brings with it.
    fn order(&self) -> (i64, i64, u64, bool) {
        let is_arrow = matches!(self.act, Act::Arrow(..));
        (self.ts, self.rank, self.place.event, is_arrow)
    }
}

/// A span on a stack; without an end it is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    start: i64,
    end: Option<i64>,
    words: Words,
    place: Place,
}

/// What a thread shows at a time.
#[derive(Default)]
struct Stack {
    spans: Vec<Open>,
    /// Arrows that end at the next span.
    pending: Vec<(Arrow, Place)>,
}

/// The events, and when all are there what becomes of them.
#[derive(Default)]
pub(super) struct Timeline {
    items: Vec<Item>,
}

impl Timeline {
    pub(super) fn add(&mut self, item: Item) {
        self.items.push(item);
    }

    pub(super) fn finish(mut self, findings: &mut Findings) {
        self.items.sort_unstable_by_key(Item::order);
        let threads = self.items.iter().filter_map(|item| item.thread).max();
        let mut stacks = Vec::new();
        stacks.resize_with(threads.map_or(0, |last| last as usize + 1), Stack::default);
        let mut arrows = Arrows::default();
        for item in &self.items {
            if let Act::Arrow(_, arrow) = item.act {
                arrows.number(arrow);
            }
            let lost = match (item.thread, item.act) {
                (Some(thread), _) => stacks[thread as usize].take(item, &mut arrows, findings),
                (None, Act::Arrow(step, arrow)) => arrows.take(step, arrow),
                (None, _) => None,
            };
            if let Some(rule) = lost {
                findings.add(rule, item.place);
            }
        }
        for (_, place) in stacks.iter().flat_map(|stack| &stack.pending) {
            findings.add(Rule::FlowWithoutNextSpan, *place);
        }
    }
}

impl Stack {
    /// Adds an event; why it is lost, if it is and that has not been told.
    fn take(&mut self, item: &Item, arrows: &mut Arrows, findings: &mut Findings) -> Option<Rule> {
        match item.act {
            Act::Arrow(Step::EndNext, arrow) => {
                self.pending.push((arrow, item.place));
                None
            }
            Act::Arrow(..) if self.spans.is_empty() => Some(Rule::FlowWithoutSpan),
            Act::Arrow(step, arrow) => arrows.take(step, arrow),
            Act::Span(dur) => {
                if let Err(other) = self.close(item.ts, Some(dur), findings) {
                    findings.add_overlap(item.place, other);
                    return None;
                }
                let words = Words { name: 0, cat: 0 };
                let end = Some(item.ts.saturating_add(dur));
                self.begin(item, end, words, arrows, findings)
            }
            Act::Begin(words) => {
                // Without a duration nothing overlaps.
                let _ = self.close(item.ts, None, findings);
                self.begin(item, None, words, arrows, findings)
            }
            Act::End(words) => {
                let _ = self.close(item.ts, None, findings);
                self.end(item.ts, words)
            }
        }
    }

    /// Puts a span on the stack; arrows that waited for it end there.
    fn begin(
        &mut self,
        item: &Item,
        end: Option<i64>,
        words: Words,
        arrows: &mut Arrows,
        findings: &mut Findings,
    ) -> Option<Rule> {
        if self.spans.len() >= DEPTH {
            return Some(Rule::TooDeep);
        }
        self.spans.push(Open {
            start: item.ts,
            end,
            words,
            place: item.place,
        });
        for (arrow, place) in self.pending.drain(..) {
            if let Some(rule) = arrows.end_next(arrow) {
                findings.add(rule, place);
            }
        }
        None
    }

    fn end(&mut self, ts: i64, words: Words) -> Option<Rule> {
        let agree = |wanted: u64, is: u64| wanted == 0 || wanted == is;
        let is_its = |open: &Open| {
            open.end.is_none()
                && agree(words.name, open.words.name)
                && agree(words.cat, open.words.cat)
        };
        let Some(at) = self.spans.iter().rposition(is_its) else {
            return Some(Rule::EndWithoutBegin);
        };
        self.spans[at].end = Some(ts);
        if at + 1 == self.spans.len() {
            self.spans.pop();
        }
        None
    }

    /// Takes off what has ended, for something that begins at `ts`; if that has a duration and overlaps a span without being in it,
    /// the place of that one. Open spans on one that has ended should have ended before it, and are cut.
    fn close(&mut self, ts: i64, dur: Option<i64>, findings: &mut Findings) -> Result<(), Place> {
        let mut open_above = None;
        for at in (0..self.spans.len()).rev() {
            let span = self.spans[at];
            let Some(end) = span.end else {
                open_above = Some(span.place);
                continue;
            };
            if let Some(place) = open_above {
                if ts > end {
                    findings.add_cut(place, span.place);
                    self.spans.truncate(at);
                    open_above = None;
                }
                continue;
            }
            // Instants of one time lie on each other.
            let are_instants = span.start == end && dur == Some(0);
            if end < ts || end == ts && !are_instants {
                // The uppermost one, even where an end (E) has ended one below it first.
                self.spans.pop();
            } else if dur.is_some_and(|dur| ts < end && ts.saturating_add(dur) > end) {
                return Err(span.place);
            }
        }
        Ok(())
    }
}
