//! The first span of each request on each thread. If the program draws the request's flow elsewhere, such a span gets a step of it.
//!
//! "First" is decided within a chunk, which knows all its events. So the second pass needs no memory of other chunks, and the trace does not depend on the order
//! in which workers take them.

use crate::link::mention::{EventPlace, Mention};
use crate::link::table::{Link, LinkTable};
use crate::store::sorter::Record;
use std::collections::hash_map::Entry;
use std::ops::Range;
use trace_store::hashed_map::HashedMap;

/// The first span of a request on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FirstSpan {
    pub(crate) place: EventPlace,
    /// Key of the request.
    pub(crate) request: u64,
}

impl Record for FirstSpan {}

/// The first spans of the chunk that is being read.
#[derive(Default)]
pub(crate) struct ChunkFirstSpans {
    /// For each request on each thread, the begin of its first span and the position of that span in `spans`.
    known: HashedMap<(i64, usize)>,
    spans: Vec<FirstSpan>,
}

impl ChunkFirstSpans {
    /// Takes a span of a request.
    #[inline(always)]
    pub(crate) fn see(&mut self, request: u64, mention: &Mention) {
        let place = mention.place;
        let span = FirstSpan { place, request };
        match self.known.entry(request ^ mention.thread) {
            Entry::Occupied(mut known) => {
                let (ts_ns, at) = known.get_mut();
                // A span is written when it ends, so one within it comes first.
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

    /// Moves the chunk's spans to a batch.
    pub(crate) fn move_to(&mut self, spans: &mut Vec<FirstSpan>) {
        spans.append(&mut self.spans);
        self.known.clear();
    }
}

/// Returns the spans at these offsets of a source from those sorted by place.
pub(crate) fn in_source(spans: &[FirstSpan], source: usize, offsets: Range<usize>) -> &[FirstSpan] {
    let before = |offset: usize| {
        let place = EventPlace::new(source, offset, false);
        spans.partition_point(|span| span.place < place)
    };
    &spans[before(offsets.start)..before(offsets.end)]
}

/// The links of first spans for whose requests the program draws a flow, sorted by place. They are asked for in nearly this order.
#[derive(Debug, Default)]
pub(crate) struct FirstSpanLinks {
    /// The place of each, and its link.
    links: Vec<(u64, Link)>,
    /// The first of them that is not before the place asked for last.
    at: usize,
    last: u64,
}

impl FirstSpanLinks {
    /// Looks all links up at once, so that the waits for memory overlap.
    pub(crate) fn find(spans: &[FirstSpan], table: &LinkTable) -> FirstSpanLinks {
        let slots = spans.iter().map(|span| table.slots.get(&span.request));
        let slots: Vec<_> = slots.map(Option::<&u32>::copied).collect();
        let link = |(span, slot): (&FirstSpan, Option<u32>)| {
            let link = table.link_at(slot?)?;
            link.own.is_some().then_some((span.place.0, *link))
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

    /// Returns true if the span at this place has a link.
    #[inline(always)]
    pub(crate) fn has(&mut self, place: EventPlace) -> bool {
        let is_before = |span: &(u64, Link)| span.0 < place.0;
        if place.0 < self.last {
            self.at = self.links.partition_point(is_before);
        }
        while self.links.get(self.at).is_some_and(is_before) {
            self.at += 1;
        }
        self.last = place.0;
        self.links
            .get(self.at)
            .is_some_and(|span| span.0 == place.0)
    }

    /// Returns the links of the place asked for last.
    pub(crate) fn links(&self) -> impl Iterator<Item = &Link> {
        let at_place = |span: &&(u64, Link)| span.0 == self.last;
        self.links[self.at..]
            .iter()
            .take_while(at_place)
            .map(|span| &span.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::program::styles::Style;
    use crate::link::table::OwnFlow;

    fn mention(ts_ns: i64, place: u64, thread: u64) -> Mention {
        Mention {
            ts_ns,
            place: EventPlace(place),
            thread,
            end_ns: ts_ns + 10,
        }
    }

    fn span((place, request): (u64, u64)) -> FirstSpan {
        let place = EventPlace(place);
        FirstSpan { place, request }
    }

    fn first(found: &ChunkFirstSpans) -> Vec<FirstSpan> {
        let mut spans = found.spans.clone();
        spans.sort_unstable();
        spans
    }

    #[test]
    fn the_first_span_is_the_one_that_begins_first() {
        let mut found = ChunkFirstSpans::default();
        for (request, ts_ns, place, thread) in [
            (1, 50, 1, 100),
            (2, 50, 1, 100),
            // The span around it is written later.
            (1, 40, 2, 100),
            (1, 60, 3, 100),
            (1, 70, 4, 200),
        ] {
            found.see(request, &mention(ts_ns, place, thread));
        }
        assert_eq!(first(&found), [(1, 2), (2, 1), (4, 1)].map(span));
    }

    /// Returns links of requests 1 and 2, for which the program draws a flow, and of request 3, for which it draws none.
    fn table() -> LinkTable {
        let link = |flow| Link {
            flow,
            first: EventPlace(0),
            last: EventPlace(0),
            own: (flow < 3).then_some(OwnFlow {
                id: flow,
                style: Style(0),
                start_ns: 0,
                end_ns: i64::MAX,
                thread: 7,
                has_lead: false,
                is_elsewhere: false,
            }),
        };
        LinkTable {
            slots: (1..=3).zip(0..).collect(),
            link_of_slot: vec![0, 1, 2],
            links: (1..=3).map(link).collect(),
            ..LinkTable::default()
        }
    }

    #[test]
    fn places_are_found_in_any_order() {
        let of_place = |at: u64| {
            [
                (10 * at, 1),
                (10 * at, 2),
                (10 * at + 5, 3),
                (10 * at + 7, 4),
            ]
        };
        let spans: Vec<FirstSpan> = (0..100).flat_map(of_place).map(span).collect();
        let mut links = FirstSpanLinks::find(&spans, &table());
        let ascending = 0..1010;
        let jumps = [900, 30, 35, 30, 990, 0, 500, 1000, 2000, 10];
        for place in ascending.chain(jumps) {
            let expected = place % 10 == 0 && place < 1000;
            assert_eq!(links.has(EventPlace(place)), expected, "{place}");
            let flows: Vec<u64> = links.links().map(|link| link.flow).collect();
            assert_eq!(flows, if expected { &[1, 2][..] } else { &[] }, "{place}");
        }
        assert!(!FirstSpanLinks::default().has(EventPlace(0)));
    }

    #[test]
    fn a_line_has_the_spans_of_its_place_finished_or_not() {
        let span = |offset: usize, is_unfinished: bool, request: u64| FirstSpan {
            place: EventPlace::new(3, offset, is_unfinished),
            request,
        };
        let spans = [
            span(1, false, 1),
            span(2, false, 1),
            span(2, false, 2),
            span(2, true, 3),
            span(3, false, 4),
        ];
        assert_eq!(in_source(&spans, 3, 2..3), &spans[1..4]);
        assert_eq!(in_source(&spans, 3, 4..5), []);
        assert_eq!(in_source(&spans, 4, 0..9), []);
    }
}
