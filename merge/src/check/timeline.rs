//! All events in the order of their times: which spans find room on their thread, and which arrows find both ends.
//!
//! This does what Perfetto's importer does with a stack of spans for each thread, its oddities included: an arrow binds to the span
//! that began last, even if that has ended, as long as no other event of the thread has taken it off the stack. Spans that clash are
//! not put on the stack, so that what comes after is compared with what is shown.

use super::finding::{Findings, Place};
use super::rule::Rule;
use std::cmp::Reverse;
use std::collections::HashSet;

/// What an event does. Names and arrows are hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// A span of so many ns; an instant is one of none.
    Span(i64),
    Begin(u64),
    /// The end of a span, of any if it has no name.
    End(Option<u64>),
    Start(u64),
    /// A step, or an end at the span that is open.
    Step(u64),
    /// An end at the next span.
    EndNext(u64),
}

/// An event on the timeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) ts: i64,
    pub(super) thread: u32,
    pub(super) act: Act,
    pub(super) place: Place,
}

impl Item {
    /// Whole spans come before what else happens at that time, the longest first.
    fn order(&self) -> (i64, Reverse<Option<i64>>, u64) {
        let dur = match self.act {
            Act::Span(dur) => Some(dur),
            _ => None,
        };
        (self.ts, Reverse(dur), self.place.event)
    }
}

/// A span on a stack; without an end it is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    name: u64,
    end: Option<i64>,
}

/// What a thread shows at a time.
#[derive(Default)]
struct Stack {
    spans: Vec<Open>,
    /// Arrows that end at the next span.
    pending: Vec<(u64, Place)>,
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
        let threads = self.items.iter().map(|item| item.thread as usize + 1).max();
        let mut stacks = Vec::new();
        stacks.resize_with(threads.unwrap_or(0), Stack::default);
        let mut arrows = Arrows::default();
        for item in &self.items {
            let stack = &mut stacks[item.thread as usize];
            if let Some(rule) = stack.take(item, &mut arrows, findings) {
                findings.add(rule, item.place);
            }
        }
        for (_, place) in stacks.iter().flat_map(|stack| &stack.pending) {
            findings.add(Rule::FlowWithoutNextSpan, *place);
        }
    }
}

/// Arrows that have started.
#[derive(Default)]
struct Arrows(HashSet<u64>);

impl Arrows {
    fn start(&mut self, arrow: u64) -> Option<Rule> {
        (!self.0.insert(arrow)).then_some(Rule::FlowTwice)
    }

    /// An end at a span that waited for it; from then on Perfetto takes the arrow for one that has started.
    fn end_next(&mut self, arrow: u64) -> Option<Rule> {
        self.0.insert(arrow).then_some(Rule::FlowFromElsewhere)
    }

    fn reach(&self, arrow: u64) -> Option<Rule> {
        (!self.0.contains(&arrow)).then_some(Rule::FlowWithoutStart)
    }
}

impl Stack {
    /// Adds an event; why it is lost, if it is.
    fn take(&mut self, item: &Item, arrows: &mut Arrows, findings: &mut Findings) -> Option<Rule> {
        match item.act {
            Act::Start(_) | Act::Step(_) if self.spans.is_empty() => Some(Rule::FlowWithoutSpan),
            Act::Start(arrow) => arrows.start(arrow),
            Act::Step(arrow) => arrows.reach(arrow),
            Act::EndNext(arrow) => {
                self.pending.push((arrow, item.place));
                None
            }
            Act::Span(dur) => {
                self.close(item, findings);
                let end = item.ts.saturating_add(dur);
                let outer = self.spans.last().and_then(|outer| outer.end);
                if outer.is_some_and(|outer| outer < end) {
                    return Some(Rule::Overlap);
                }
                self.begin(0, Some(end), arrows, findings)
            }
            Act::Begin(name) => {
                self.close(item, findings);
                self.begin(name, None, arrows, findings)
            }
            Act::End(name) => {
                self.close(item, findings);
                self.end(item.ts, name)
            }
        }
    }

    /// Puts a span on the stack; arrows that waited for it end there.
    fn begin(
        &mut self,
        name: u64,
        end: Option<i64>,
        arrows: &mut Arrows,
        findings: &mut Findings,
    ) -> Option<Rule> {
        self.spans.push(Open { name, end });
        for (arrow, place) in self.pending.drain(..) {
            if let Some(rule) = arrows.end_next(arrow) {
                findings.add(rule, place);
            }
        }
        None
    }

    fn end(&mut self, ts: i64, name: Option<u64>) -> Option<Rule> {
        let is_its = |open: &Open| open.end.is_none() && name.is_none_or(|name| name == open.name);
        let Some(at) = self.spans.iter().rposition(is_its) else {
            return Some(Rule::EndWithoutBegin);
        };
        self.spans[at].end = Some(ts);
        if at + 1 == self.spans.len() {
            self.spans.pop();
        }
        None
    }

    /// Takes off what has ended. Open spans on one that has ended should have ended before it.
    fn close(&mut self, item: &Item, findings: &mut Findings) {
        let mut above_is_open = false;
        for at in (0..self.spans.len()).rev() {
            match self.spans[at].end {
                None => above_is_open = true,
                Some(end) if above_is_open && item.ts <= end => {}
                Some(end) if item.ts >= end && above_is_open => {
                    findings.add(Rule::MisplacedEnd, item.place);
                    self.spans.truncate(at);
                    above_is_open = false;
                }
                // The uppermost one, even where an end (E) has ended one below it first.
                Some(end) if item.ts >= end => drop(self.spans.pop()),
                Some(_) => {}
            }
        }
    }
}
