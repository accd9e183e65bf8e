//! Checks that the spans of each track nest, and that its arrows have a span and a start.
//!
//! In: the effects of events on their tracks, in any order. Out: the rules that events of one track break together. A track is a thread, an async id or an
//! arrow. Everything is sorted by track and time, so only one track is in memory at a time.

use crate::report::{Findings, Rule};
use std::io;
use std::path::Path;
use trace_base::span_stack::{OpenSpan, SpanStack, UNFINISHED};
use trace_store::sorter::{Record, Sorter};

/// Maximum number of open spans on a track. Perfetto has the same limit.
const DEPTH: usize = 512;

/// Effect of an event on its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// End of a span of a thread.
    End,
    /// End of an async span. Among events of the same time, it keeps its position in the file, as in Perfetto.
    AsyncEnd,
    /// A complete span. An instant is a span of length 0.
    Span,
    /// Begin of a span.
    Begin,
    /// An arrow that binds to the current span.
    Bind,
    /// An arrow that binds to the next span.
    BindNext,
    /// Start of an arrow.
    Start,
    /// Step or end of an arrow.
    StepOrEnd,
}

/// An effect with its track, time and event. Items are sorted by their fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    track: u64,
    ts: i64,
    /// Sort key among items of the same time: first ends of a thread, then complete spans by their negative duration, and then all others.
    rank: i64,
    offset: u64,
    name: u64,
    category: u64,
    kind: Kind,
}

impl Item {
    pub(crate) fn new(track: u64, ts: i64, kind: Kind, offset: u64) -> Item {
        Item {
            track,
            ts,
            rank: if kind == Kind::End { i64::MIN } else { 1 },
            offset,
            name: 0,
            category: 0,
            kind,
        }
    }

    /// Returns the item with the duration of a complete span, or with the hashes of its name and
    /// category, which match a begin with its end.
    pub(crate) fn with(mut self, dur: i64, name_and_category: [u64; 2]) -> Item {
        if self.kind == Kind::Span {
            self.rank = -dur;
        }
        [self.name, self.category] = name_and_category;
        self
    }

    /// Returns true if this end can belong to `begin`.
    fn can_end(&self, begin: &Item) -> bool {
        begin.kind == Kind::Begin
            && [0, begin.name].contains(&self.name)
            && [0, begin.category].contains(&self.category)
    }
}

impl Record for Item {}

/// Collects the effects of events, and checks them when all events are known.
pub(crate) struct Timeline<'f>(Sorter<'f, Item>);

impl Timeline<'_> {
    /// Creates an empty timeline. Items that do not fit into memory are stored in files in `folder`.
    pub(crate) fn new(folder: &Path) -> Timeline<'_> {
        Timeline(Sorter::new(folder))
    }

    pub(crate) fn add(&mut self, item: Item) -> io::Result<()> {
        self.0.push(item)
    }

    /// Checks all tracks.
    pub(crate) fn finish(self, findings: &mut Findings<'_>) -> io::Result<()> {
        let items = self.0.finish()?;
        for items in items.chunk_by(|one, next| one.track == next.track) {
            let mut track = Track::default();
            items.iter().for_each(|item| track.add(item, findings));
            track.finish(findings);
        }
        Ok(())
    }
}

/// State of a track at a certain time.
#[derive(Default)]
struct Track {
    open: SpanStack<Item>,
    /// Number of arrows that bind to the next span, and the offset of the first one.
    waiting: Option<(u64, u64)>,
    /// Offset of the event that starts the arrow.
    start: Option<u64>,
}

impl Track {
    fn add(&mut self, item: &Item, findings: &mut Findings<'_>) {
        let at = item.offset;
        // As in Perfetto, an arrow binds to the last span even if that has ended.
        let is_span = matches!(
            item.kind,
            Kind::Span | Kind::Begin | Kind::End | Kind::AsyncEnd
        );
        while is_span && self.open.pop_ended(item.ts).is_some() {}
        match item.kind {
            Kind::Span => self.complete(item, findings),
            Kind::Begin => self.begin(item, UNFINISHED),
            Kind::End | Kind::AsyncEnd => self.end(item, findings),
            Kind::Bind if self.open.is_empty() => findings.add(Rule::FlowWithoutSpan, at),
            Kind::Bind => {}
            Kind::BindNext => self.waiting.get_or_insert((0, at)).0 += 1,
            Kind::Start => match self.start {
                Some(first) => findings.add_clash(Rule::FlowTwice, at, first),
                None => self.start = Some(at),
            },
            Kind::StepOrEnd if self.start.is_none() => findings.add(Rule::FlowWithoutStart, at),
            Kind::StepOrEnd => {}
        }
    }

    fn finish(self, findings: &mut Findings<'_>) {
        if let Some((count, first)) = self.waiting {
            findings.add_many(Rule::FlowWithoutSpan, count, first);
        }
    }

    /// Adds a complete span to its track. If it ends after the innermost open span, reports that
    /// the two overlap instead.
    fn complete(&mut self, item: &Item, findings: &mut Findings<'_>) {
        let end = item.ts - item.rank;
        match self.open.innermost().filter(|outer| outer.end_ns < end) {
            Some(outer) => findings.add_clash(Rule::Overlap, item.offset, outer.value.offset),
            None => self.begin(item, end),
        }
    }

    fn begin(&mut self, item: &Item, end: i64) {
        if self.open.len() == DEPTH {
            self.open.pop_outermost();
        }
        self.open.push(OpenSpan {
            start_ns: item.ts,
            end_ns: end,
            value: *item,
        });
        self.waiting = None;
    }

    /// Ends the innermost span that matches. Spans that began inside it must have ended before, and the spans around it must not.
    fn end(&mut self, item: &Item, findings: &mut Findings<'_>) {
        let matches = |(_, span): &(usize, &OpenSpan<Item>)| item.can_end(&span.value);
        let Some((depth, span)) = self.open.iter().enumerate().rfind(matches) else {
            findings.add(Rule::EndWithoutBegin, item.offset);
            return;
        };
        let (span, inner) = (span.value.offset, self.open.get(depth + 1));
        if let Some(inner) = inner {
            findings.add_clash(Rule::MisplacedEnd, inner.value.offset, span);
        }
        let has_ended = |outer: &&OpenSpan<Item>| outer.end_ns < item.ts;
        let outer = self.open.iter().take(depth).find(has_ended);
        if let Some(outer) = outer.map(|outer| outer.value.offset) {
            findings.add_clash(Rule::MisplacedEnd, span, outer);
        }
        self.open.truncate(depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rules that the items of one track break, in the order of the rules.
    fn rules(items: &[(Kind, i64, i64, u64)]) -> Vec<(Rule, u64)> {
        let folder = std::env::temp_dir();
        let mut timeline = Timeline::new(&folder);
        for ((kind, ts, dur, name), offset) in items.iter().zip(0..) {
            let item = Item::new(7, *ts, *kind, offset).with(*dur, [*name, 0]);
            timeline.add(item).unwrap();
        }
        let mut findings = Findings::new(b"");
        timeline.finish(&mut findings).unwrap();
        let report = findings.report(Path::new("track"), 0);
        let counts = report.findings.iter();
        counts.map(|found| (found.rule, found.count)).collect()
    }

    use Kind::{Bind, BindNext, Span, Start, StepOrEnd};

    #[test]
    fn arrows_start_once_and_find_their_spans() {
        let without_span = |count| [(Rule::FlowWithoutSpan, count)];
        assert_eq!(rules(&[(Start, 5, 0, 0), (StepOrEnd, 5, 0, 0)]), []);
        let twice = [(Start, 5, 0, 0), (Start, 6, 0, 0), (StepOrEnd, 7, 0, 0)];
        assert_eq!(rules(&twice), [(Rule::FlowTwice, 1)]);
        let late = [(Start, 5, 0, 0), (StepOrEnd, 4, 0, 0)];
        assert_eq!(rules(&late), [(Rule::FlowWithoutStart, 1)]);
        assert_eq!(rules(&[(Bind, 5, 0, 0)]), without_span(1));
        assert_eq!(rules(&[(Span, 5, 1, 0), (Bind, 9, 0, 0)]), []);
        let next = [(BindNext, 4, 0, 0), (Span, 5, 1, 0)];
        assert_eq!(rules(&next), []);
        let none = [(Span, 3, 1, 0), (BindNext, 4, 0, 0), (BindNext, 5, 0, 0)];
        assert_eq!(rules(&none), without_span(2));
    }
}
