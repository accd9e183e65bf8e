//! The linker's part of the first pass, which reads all events before the trace is written: finds
//! the requests of a chunk's events, and the first and last event of each. A flow goes from one to
//! the other.

use super::args::candidates::{Hits, offset};
use super::args::ids::{Lists, RequestIds};
use super::batch::{Batch, IdHashes, max_batch_ids};
use super::collector::{Collector, Origin};
use super::mention::{EventPosition, Mention, RequestBounds, ThreadKeys, can_bind_flow};
use super::program::first_spans::ChunkFirstSpans;
use super::program::styles::{Style, StyleCache};
use super::records::{FlowPhases, ThreadFlow};
use crate::event::flow;
use crate::event::line::Event;
use crate::event::scan::Part;
use crate::pass::chunk::Chunk;
use crate::pass::first_pass::Visitor;
use crate::pass::source::Source;
use crate::summary::summarize::{CachedLine, ChunkVisitor};
use sa_format::Phase;

/// Visitor that reads the events of one chunk.
pub(crate) struct RequestGatherer<'a, 'f> {
    collector: &'a Collector<'f>,
    origin: Origin,
    /// The chunk, which contains the window.
    chunk: &'a Chunk,
    bytes: &'a [u8],
    hits: Hits<'a>,
    ids: RequestIds<'a>,
    lists: Lists<'a, CachedList>,
    batch: Batch,
    first_spans: ChunkFirstSpans,
    styles: StyleCache,
    max_batch_ids: usize,
    threads: ThreadKeys,
}

/// Requests of a list, and bounds of the events with the list that are not yet added to each of
/// them.
struct CachedList {
    ids: Vec<IdHashes>,
    bounds: RequestBounds,
    /// Threads on which a span with the list was found, each with the begin of the first one.
    threads: Vec<(u64, i64)>,
}

impl<'a> RequestGatherer<'a, '_> {
    fn flow_event(&mut self, event: &Event<'_>) {
        let Origin {
            recording, is_ours, ..
        } = self.origin;
        let global = flow::global_number(event);
        if global.is_none() && !is_ours {
            return;
        }
        let Some(style) = self.styles.get(event, &self.collector.styles) else {
            return;
        };
        if let Some(number) = global {
            self.global_flow(number, style, event);
        } else if let Some((id, _)) = flow::trace_id(event, recording as u64) {
            self.local_flow(id, style, event.phase == Phase::FlowStart);
        }
        self.flush_if_full();
    }

    fn local_flow(&mut self, id: u64, style: Style, has_start: bool) {
        let flow = FlowPhases {
            key: id ^ style_hash(style),
            style,
            has_start,
            has_other: !has_start,
        };
        let entry = self.batch.phases.entry(flow.key);
        entry.and_modify(|found| found.add(&flow)).or_insert(flow);
    }

    fn global_flow(&mut self, number: u64, style: Style, event: &Event<'_>) {
        let Origin {
            recording,
            scope,
            clock,
            is_ours,
        } = self.origin;
        let is_start = event.phase == Phase::FlowStart;
        let time_if = |phase| match event.phase == phase {
            true => event.ts_ns,
            false => i64::MAX,
        };
        let flow = ThreadFlow {
            key: number ^ scope,
            id: flow::id_from_global_number(number),
            style,
            thread: self.threads.key(recording, (event.pid, event.tid)),
            clock,
            start_ns: time_if(Phase::FlowStart),
            end_ns: time_if(Phase::FlowEnd),
            has_our_start: is_ours && is_start,
            has_our_rest: is_ours && !is_start,
        };
        let flows = &mut self.batch.flows;
        let entry = flows.entry(flow.key ^ style_hash(style) ^ flow.thread);
        entry.and_modify(|found| found.add(&flow)).or_insert(flow);
    }

    /// Adds an event to all requests whose ids it has.
    fn mention(&mut self, event: &Event<'a>, start: usize, mention: &Mention) {
        let collector = self.collector;
        let (batch, first_spans) = (&mut self.batch, &mut self.first_spans);
        let is_span = mention.is_span() && collector.any_ours;
        if let Some(list) = self.ids.read(event, start, &mut self.hits, &mut self.lists) {
            if is_span && list.is_first_on(mention) {
                let ids = list.ids.iter();
                ids.for_each(|id| first_spans.add(id.key, mention));
            }
            return list.bounds.add_event(mention);
        }
        let scope = self.origin.scope;
        let ids = self.ids.request_ids().iter();
        let linked = ids.filter(|id| collector.is_selected(id));
        for id in linked.clone() {
            batch.add_event(id, scope, mention);
            if is_span {
                first_spans.add(id.key ^ scope, mention);
            }
            if let Some(client) = self.ids.only_client_id() {
                batch.add_client(id, client, scope);
            }
        }
        // The next event with the same list is added once for all its requests.
        if let Some((text, len)) = self.ids.list() {
            let listed = CachedList {
                ids: linked.map(|id| batch.id_hashes(id.key ^ scope)).collect(),
                bounds: RequestBounds::NONE,
                threads: Vec::new(),
            };
            if let Some(replaced) = self.lists.insert(text, len, listed) {
                replaced.add_to(batch);
            }
        }
        self.flush_if_full();
    }

    fn flush_if_full(&mut self) {
        if self.batch.is_full(self.max_batch_ids) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        for listed in self.lists.drain() {
            listed.add_to(&mut self.batch);
        }
        let clock = self.origin.clock;
        self.collector.add(&mut self.batch, clock);
    }
}

impl CachedList {
    /// Returns true if no earlier span with this list on its thread was found.
    fn is_first_on(&mut self, mention: &Mention) -> bool {
        let mut threads = self.threads.iter_mut();
        match threads.find(|(thread, _)| *thread == mention.thread) {
            Some((_, ts_ns)) if *ts_ns <= mention.ts_ns => return false,
            Some((_, ts_ns)) => *ts_ns = mention.ts_ns,
            None => self.threads.push((mention.thread, mention.ts_ns)),
        }
        true
    }

    /// Adds the events with the list to each of its requests.
    fn add_to(&self, batch: &mut Batch) {
        if self.bounds != RequestBounds::NONE {
            for id in &self.ids {
                batch.add_list_events(*id, &self.bounds);
            }
        }
    }
}

impl<'f> Visitor for Collector<'f> {
    type PerChunk<'a>
        = RequestGatherer<'a, 'f>
    where
        Self: 'a;

    fn chunk<'a>(&'a self, chunk: &'a Chunk, source: &Source<'a>) -> RequestGatherer<'a, 'f> {
        RequestGatherer {
            collector: self,
            origin: self.origins[source.recording],
            chunk,
            bytes: source.bytes,
            hits: Hits::new(source.bytes, &chunk.parts),
            ids: RequestIds::default(),
            lists: Lists::default(),
            batch: Batch::default(),
            first_spans: ChunkFirstSpans::default(),
            styles: StyleCache::default(),
            max_batch_ids: max_batch_ids(rayon::current_num_threads()),
            threads: ThreadKeys::default(),
        }
    }
}

impl<'a> ChunkVisitor<'a> for RequestGatherer<'a, '_> {
    fn enter(&mut self, part: Part) {
        self.hits.enter(part);
    }

    #[inline]
    fn event(&mut self, event: &Event<'a>) {
        if event.phase.is_flow() {
            return self.flow_event(event);
        }
        let start = offset(self.bytes, event.line);
        if self.hits.any_in(start, start + event.line.len()) && can_bind_flow(event) {
            let position = EventPosition::new(self.chunk.source, start, event.is_unfinished());
            let thread = (event.pid, event.tid);
            let thread = self.threads.key(self.origin.recording, thread);
            // If a window cuts a span, its arrows start at the shown part.
            let shown = self.chunk.cut(event);
            let mention = Mention {
                ts_ns: shown.as_ref().unwrap_or(event).ts_ns,
                ..Mention::from_event(event, position, thread)
            };
            self.mention(event, start, &mention);
        }
    }

    #[inline(always)]
    fn cached(&mut self, line: CachedLine<'a>) {
        if (line.phase.is_flow() || self.hits.before(line.start + line.text.len()))
            && let Some(event) = line.event()
        {
            self.event(&event);
        }
    }

    fn merge(mut self) {
        self.first_spans.move_to(&mut self.batch.first_spans);
        self.flush();
        self.collector.add_cut(self.ids.cut);
    }
}

/// Returns a hash of a style.
fn style_hash(style: Style) -> u64 {
    u64::from(style.0 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
