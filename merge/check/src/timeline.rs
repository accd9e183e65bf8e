//! All events in the order of their times: which spans find room on their thread, and which arrows find both ends.
//!
//! This does what Perfetto's importer does with a stack of spans for each thread and async track, its oddities included. An arrow binds to the span that
//! began last, even if that has ended, unless another event of the thread has taken it off the stack. Spans that clash are not put on the stack, so that
//! what comes after is compared with what is shown.

use super::arrow::{Arrow, Arrows, Step};
use super::finding::{Findings, Place};
use super::item::{Act, Item, Row, Words};
use super::rule::Rule;
use super::temporary::Folder;
use super::track::{Tracks, Turn};
use std::io;
use trace_store::sorter::Sorter;

/// Spans on one stack; further ones do not go on it.
const DEPTH: usize = 512;

/// A span on a stack; without an end it is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    start: i64,
    end: Option<i64>,
    words: Words,
    place: Place,
}

/// What a thread or async track shows at a time.
#[derive(Default)]
struct Stack {
    spans: Vec<Open>,
    /// Arrows that end at the next span.
    pending: Vec<(Arrow, Place)>,
}

/// The events, and when all are there what becomes of them.
pub(super) struct Timeline<'f> {
    items: Sorter<'f, Item>,
    folder: &'f Folder,
}

impl Timeline<'_> {
    /// What is too much for memory goes to files in `folder`.
    pub(super) fn new(folder: &Folder) -> Timeline<'_> {
        Timeline {
            items: Sorter::new(folder.path()),
            folder,
        }
    }

    pub(super) fn add(&mut self, item: Item) -> io::Result<()> {
        let pushed = self.items.push(item);
        pushed.map_err(|error| self.folder.named(error))
    }

    pub(super) fn finish(self, tracks: Tracks, findings: &mut Findings) -> io::Result<()> {
        let mut rows = Rows {
            tracks,
            ..Rows::default()
        };
        let sorted = self.items.finish();
        let taken = sorted.and_then(|items| {
            items.each(|item| {
                rows.take(&item, findings);
                Ok(())
            })
        });
        taken.map_err(|error| self.folder.named(error))?;
        for (_, place) in rows.threads.iter().flat_map(|stack| &stack.pending) {
            findings.add(Rule::FlowWithoutNextSpan, *place);
        }
        Ok(())
    }
}

/// All that is shown at a time.
#[derive(Default)]
struct Rows {
    threads: Vec<Stack>,
    asyncs: Vec<Stack>,
    tracks: Tracks,
    arrows: Arrows,
}

impl Rows {
    fn take(&mut self, item: &Item, findings: &mut Findings) {
        if let Act::Arrow(_, arrow) = item.act {
            self.arrows.number(arrow);
        }
        let (stacks, at) = match item.row {
            Row::Thread(thread) => (&mut self.threads, thread as usize),
            Row::Async(key) => (&mut self.asyncs, self.tracks.at(key, turn(item.act))),
        };
        if at >= stacks.len() {
            stacks.resize_with(at + 1, Stack::default);
        }
        if let Some(rule) = stacks[at].take(item, &mut self.arrows, findings) {
            findings.add(rule, item.place);
        }
    }
}

fn turn(act: Act) -> Turn {
    match act {
        Act::Begin(_) => Turn::Begin,
        Act::End(_) => Turn::End,
        Act::Span(_) | Act::Arrow(..) => Turn::Stay,
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
