//! The first span of each request on each thread. If the program draws the request's flow
//! elsewhere, such a span gets a step of the flow.
//!
//! "First" is decided within a chunk, where all its events are known. So the second pass needs no
//! memory of other chunks, and the trace does not depend on the order in which workers read them.

use crate::link::mention::{EventPosition, Mention};
use crate::link::table::{Link, LinkTable};
use crate::store::sorter::Record;
use std::collections::hash_map::Entry;
use std::ops::Range;
use trace_store::hashed_map::HashedMap;

/// First span of a request on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FirstSpan {
    pub(crate) position: EventPosition,
    /// Key of the request.
    pub(crate) request: u64,
}

impl Record for FirstSpan {}

/// First spans in the chunk that is being read.
#[derive(Default)]
pub(crate) struct ChunkFirstSpans {
    /// Begin of the first span of each request on each thread, and its index in `spans`.
    firsts: HashedMap<(i64, usize)>,
    spans: Vec<FirstSpan>,
}

impl ChunkFirstSpans {
    /// Adds a span of a request. It replaces the request's first span on this thread if it begins
    /// earlier.
    #[inline(always)]
    pub(crate) fn add(&mut self, request: u64, mention: &Mention) {
        let position = mention.position;
        let span = FirstSpan { position, request };
        match self.firsts.entry(request ^ mention.thread) {
            Entry::Occupied(mut first) => {
                let (ts_ns, at) = first.get_mut();
                // A span is written when it ends, so a nested span comes before the outer one.
                if mention.ts_ns < *ts_ns {
                    *ts_ns = mention.ts_ns;
                    self.spans[*at] = span;
                }
            }
            Entry::Vacant(new) => {
                new.insert((mention.ts_ns, self.spans.len()));
                self.spans.push(span);
            }
        }
    }

    /// Appends the first spans of the chunk to `spans`, and empties this collection for the next
    /// chunk.
    pub(crate) fn move_to(&mut self, spans: &mut Vec<FirstSpan>) {
        spans.append(&mut self.spans);
        self.firsts.clear();
    }
}

/// Returns those of `spans` that are at the byte range `offsets` of a source. `spans` is sorted by
/// position.
pub(crate) fn spans_at(spans: &[FirstSpan], source: usize, offsets: Range<usize>) -> &[FirstSpan] {
    let before = |offset: usize| {
        let position = EventPosition::new(source, offset, false);
        spans.partition_point(|span| span.position < position)
    };
    &spans[before(offsets.start)..before(offsets.end)]
}

/// Links of first spans for whose requests the program draws a flow, sorted by position. They are
/// queried in nearly this order.
#[derive(Debug, Default)]
pub(crate) struct FirstSpanLinks {
    /// Position and link of each span.
    links: Vec<(u64, Link)>,
    /// Index of the first link that is not before the last queried position.
    at: usize,
    last: u64,
}

impl FirstSpanLinks {
    /// Looks up the link of each span's request, and keeps those for which the program draws a
    /// flow. All look-ups are made at once, so that the waits for memory overlap.
    pub(crate) fn find(spans: &[FirstSpan], table: &LinkTable) -> FirstSpanLinks {
        let slots = spans.iter().map(|span| table.slots.get(&span.request));
        let slots: Vec<_> = slots.map(Option::<&u32>::copied).collect();
        let link = |(span, slot): (&FirstSpan, Option<u32>)| {
            let link = table.link_at(slot?)?;
            link.program_flow
                .is_some()
                .then_some((span.position.0, *link))
        };
        let found = spans.iter().zip(slots);
        FirstSpanLinks {
            links: found.filter_map(link).collect(),
            at: 0,
            last: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Returns true if the span at this position has a link.
    #[inline(always)]
    pub(crate) fn has(&mut self, position: EventPosition) -> bool {
        let is_before = |span: &(u64, Link)| span.0 < position.0;
        if position.0 < self.last {
            self.at = self.links.partition_point(is_before);
        }
        while self.links.get(self.at).is_some_and(is_before) {
            self.at += 1;
        }
        self.last = position.0;
        self.links
            .get(self.at)
            .is_some_and(|span| span.0 == position.0)
    }

    /// Returns the links at the last queried position.
    pub(crate) fn links(&self) -> impl Iterator<Item = &Link> {
        let at_position = |span: &&(u64, Link)| span.0 == self.last;
        self.links[self.at..]
            .iter()
            .take_while(at_position)
            .map(|span| &span.1)
    }
}
