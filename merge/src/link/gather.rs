//! The first pass: finds the requests of a chunk's events, and the first and the last event of each.

use super::args::candidates::{Hits, offset};
use super::args::ids::{IdLine, RequestId, RequestIds};
use super::args::list_cache::Lists;
use super::batch::{Batch, ListedId, most_of_batch};
use super::binding::binds;
use super::collector::{ChunkOrigin, Collector};
use super::program::first_spans::ChunkFirstSpans;
use super::program::flow_threads::ThreadKeys;
use super::program::styles::{Style, StyleCache, members_of};
use super::records::{EventPlace, FlowPhases, INSTANT, Mention, ProgramFlow, RequestReach};
use crate::event::flow;
use crate::event::json::Span;
use crate::event::line::{Event, parse_canonical};
use crate::event::scan::Part;
use crate::pass::chunk::Chunk;
use crate::pass::first_pass::Visitor;
use crate::pass::source::Source;
use crate::summary::visitor::{CachedLine, ChunkVisitor};
use sa_format::Phase;

/// Looks at the events of one chunk.
pub(crate) struct Gather<'a, 'f> {
    collector: &'a Collector<'f>,
    origin: ChunkOrigin,
    /// The chunk, which knows the window.
    chunk: &'a Chunk,
    bytes: &'a [u8],
    hits: Hits<'a>,
    ids: RequestIds<'a>,
    lists: Lists<'a, Listed>,
    scratch: Scratch,
    most_of_batch: usize,
    threads: ThreadKeys,
}

/// Memory in which a chunk's requests and flows are gathered.
#[derive(Default)]
pub(super) struct Scratch {
    batch: Batch,
    first_spans: ChunkFirstSpans,
    styles: StyleCache,
}

/// An event of a flow.
struct FlowEvent {
    phase: Phase,
    id: FlowEventId,
    style: Style,
    ts_ns: i64,
    /// Process and thread, as recorded.
    thread: (i64, i64),
}

/// The id of a flow.
enum FlowEventId {
    /// The id in the trace of a flow of one process.
    Local(u64),
    /// The number of a flow that is the same in every process.
    Global(u64),
}

/// The requests of a list, and the events with it that are not yet noted of each of them.
struct Listed {
    ids: Vec<ListedId>,
    reach: RequestReach,
    /// The threads on which spans with it are known to be first spans or not, each with the begin of the first one.
    threads: Vec<(u64, i64)>,
}

impl<'a, 'f> Gather<'a, 'f> {
    fn new(
        collector: &'a Collector<'f>,
        origin: ChunkOrigin,
        bytes: &'a [u8],
        chunk: &'a Chunk,
    ) -> Self {
        Gather {
            collector,
            origin,
            chunk,
            bytes,
            hits: Hits::new(bytes, &chunk.parts),
            ids: RequestIds::default(),
            lists: Lists::default(),
            scratch: collector.scratch(),
            most_of_batch: most_of_batch(rayon::current_num_threads()),
            threads: ThreadKeys::default(),
        }
    }

    fn cached_flow(&mut self, line: CachedLine<'a>) {
        let CachedLine {
            phase,
            timed,
            text,
            thread,
            ..
        } = line;
        let known = timed.flow_id().and_then(|(id2, rest)| {
            let id = match timed.global_flow() {
                Some(number) => FlowEventId::Global(number),
                None if timed.has_local_flow() => {
                    FlowEventId::Local(flow::of_id2(id2, self.ordinal())?)
                }
                None => return None,
            };
            let styles = &self.collector.styles;
            Some(FlowEvent {
                phase,
                id,
                style: self.scratch.styles.get_after_id(rest, styles)?,
                ts_ns: timed.ts_ns,
                thread,
            })
        });
        match known {
            Some(known) => self.flow(&known),
            None => {
                if let Some(event) = parse_canonical(text) {
                    self.flow_event(&event);
                }
            }
        }
    }

    fn flow_event(&mut self, event: &Event<'_>) {
        let global = flow::global_number(event);
        if global.is_none() && !self.origin.is_ours {
            return;
        }
        let styles = &self.collector.styles;
        let style = members_of(event).and_then(|text| self.scratch.styles.get(&text, styles));
        let local = || flow::trace_id(event, self.ordinal()).map(|(id, _)| FlowEventId::Local(id));
        let id = global.map(FlowEventId::Global).or_else(local);
        if let Some((style, id)) = style.zip(id) {
            self.flow(&FlowEvent {
                phase: event.phase,
                id,
                style,
                ts_ns: event.ts_ns,
                thread: (event.pid, event.tid),
            });
        }
    }

    /// Returns the number that scopes the local flow ids of this recording.
    fn ordinal(&self) -> u64 {
        self.origin.recording as u64
    }

    fn flow(&mut self, event: &FlowEvent) {
        match event.id {
            FlowEventId::Local(id) if self.origin.is_ours => self.local_flow(id, event),
            FlowEventId::Local(_) => {}
            FlowEventId::Global(number) => self.global_flow(number, event),
        }
        if self.scratch.batch.is_full(self.most_of_batch) {
            self.flush();
        }
    }

    fn local_flow(&mut self, id: u64, event: &FlowEvent) {
        let key = id ^ spread(event.style);
        let phases = self.scratch.batch.phases.entry(key).or_insert(FlowPhases {
            key,
            style: event.style,
            has_start: false,
            has_other: false,
        });
        phases.has_start |= event.phase == Phase::FlowStart;
        phases.has_other |= event.phase != Phase::FlowStart;
    }

    fn global_flow(&mut self, number: u64, event: &FlowEvent) {
        let ChunkOrigin {
            scope,
            clock,
            recording,
            is_ours,
            ..
        } = self.origin;
        let is_start = event.phase == Phase::FlowStart;
        let thread = self.threads.of(recording, event.thread);
        let (key, style) = (number ^ scope, event.style);
        let flows = &mut self.scratch.batch.flows;
        let entry = flows.entry(key ^ spread(style) ^ thread);
        let flow = entry.or_insert_with(|| ProgramFlow {
            key,
            id: flow::of_global_number(number),
            style,
            thread,
            clock,
            start_ns: i64::MAX,
            end_ns: i64::MAX,
            has_our_start: false,
            has_our_rest: false,
        });
        match event.phase {
            Phase::FlowStart => flow.start_ns = flow.start_ns.min(event.ts_ns),
            Phase::FlowEnd => flow.end_ns = flow.end_ns.min(event.ts_ns),
            _ => {}
        }
        flow.has_our_start |= is_ours && is_start;
        flow.has_our_rest |= is_ours && !is_start;
    }

    fn cached_with_hit(&mut self, line: CachedLine<'a>) {
        let CachedLine {
            phase,
            timed,
            text,
            start,
            thread,
        } = line;
        let end_ns = match phase {
            Phase::Complete => timed.dur_ns().map(|ns| timed.ts_ns.saturating_add(ns)),
            Phase::Instant if timed.is_of_thread() => Some(INSTANT),
            _ => None,
        };
        let Some(end_ns) = end_ns else {
            return;
        };
        if self.hits.first_in(start, start + text.len()).is_some() {
            let mention = Mention {
                ts_ns: self.chunk.shown_start_ns(timed.ts_ns),
                place: EventPlace::new(self.origin.source, start, false),
                thread: self.threads.of(self.origin.recording, thread),
                end_ns,
            };
            let line = IdLine {
                text,
                start,
                args: Span::default(),
                canonical: true,
            };
            self.mentions(line, &mention);
        }
    }

    fn mentions(&mut self, line: IdLine<'a>, mention: &Mention) {
        let listed = self.ids.read(line, &mut self.hits, &mut self.lists);
        if let Some(list) = listed.and_then(|number| self.lists.get(number)) {
            let is_first = mention.is_span() && list.known.is_first_on(mention);
            if is_first && self.collector.first_spans.is_some() {
                let first_spans = &mut self.scratch.first_spans;
                let ids = list.known.ids.iter();
                ids.for_each(|id| first_spans.see(id.key, mention));
            }
            return list.known.reach.see(mention);
        }
        let scope = self.origin.scope;
        let collector = self.collector;
        let has_first = mention.is_span() && collector.first_spans.is_some();
        let linked = |id: &&RequestId<'_>| collector.links(id);
        for id in self.ids.of_requests().iter().filter(linked) {
            self.scratch.batch.see(id, scope, mention);
            if has_first {
                self.scratch.first_spans.see(id.key ^ scope, mention);
            }
        }
        self.client();
        if let Some((text, len)) = self.ids.list() {
            self.keep(text, len);
        }
        if self.scratch.batch.is_full(self.most_of_batch) {
            self.flush();
        }
    }

    /// Notes that an id of the client and those of the engine are of the same request.
    fn client(&mut self) {
        if let Some(client) = self.ids.client() {
            let ids = self.ids.of_requests().iter();
            for id in ids.filter(|id| self.collector.links(id)) {
                let batch = &mut self.scratch.batch;
                batch.see_client(id, client, self.origin.scope);
            }
        }
    }

    /// Keeps a list: the next event with it is noted of all its requests at once.
    fn keep(&mut self, text: &'a [u8], len: usize) {
        let collector = self.collector;
        let (batch, scope) = (&mut self.scratch.batch, self.origin.scope);
        let ids = self.ids.of_requests().iter();
        let ids = ids.filter(|id| collector.links(id));
        let listed = Listed {
            ids: ids.map(|id| batch.listed(id.key ^ scope)).collect(),
            reach: RequestReach::NONE,
            threads: Vec::new(),
        };
        if let Some(forgotten) = self.lists.keep(text, len, listed) {
            note(batch, &forgotten);
        }
    }

    fn flush(&mut self) {
        for listed in self.lists.take() {
            note(&mut self.scratch.batch, &listed);
        }
        self.collector.add(&mut self.scratch.batch, self.origin);
    }
}

impl Listed {
    /// Returns true if no earlier span with this list on its thread is known.
    fn is_first_on(&mut self, mention: &Mention) -> bool {
        let mut threads = self.threads.iter_mut();
        match threads.find(|(thread, _)| *thread == mention.thread) {
            Some((_, ts_ns)) if *ts_ns <= mention.ts_ns => return false,
            Some((_, ts_ns)) => *ts_ns = mention.ts_ns,
            None => self.threads.push((mention.thread, mention.ts_ns)),
        }
        true
    }
}

impl<'f> Visitor for Collector<'f> {
    type OfChunk<'a>
        = Gather<'a, 'f>
    where
        Self: 'a;

    fn chunk<'a>(&'a self, chunk: &'a Chunk, source: &Source<'a>) -> Gather<'a, 'f> {
        let origin = self.origin(chunk, source);
        Gather::new(self, origin, source.bytes, chunk)
    }
}

impl<'a> ChunkVisitor<'a> for Gather<'a, '_> {
    fn enter(&mut self, part: Part) {
        self.hits.enter(part);
    }

    #[inline]
    fn event(&mut self, event: &Event<'a>) {
        if event.phase.is_flow() {
            return self.flow_event(event);
        }
        let start = offset(self.bytes, event.line);
        if self.hits.any_in(start, start + event.line.len()) && binds(event) {
            let line = IdLine {
                text: event.line,
                start,
                args: event.fields.args,
                canonical: false,
            };
            // The arrows of a span that a window cuts are drawn from what is shown of it.
            let shown = self.chunk.cut(event);
            let mention = Mention {
                ts_ns: shown.as_ref().unwrap_or(event).ts_ns,
                place: EventPlace::new(self.origin.source, start, event.is_unfinished()),
                thread: self
                    .threads
                    .of(self.origin.recording, (event.pid, event.tid)),
                end_ns: match event.phase {
                    Phase::Complete => event.ts_ns.saturating_add(event.dur_ns),
                    Phase::Begin => i64::MAX,
                    _ => INSTANT,
                },
            };
            self.mentions(line, &mention);
        }
    }

    #[inline(always)]
    fn cached(&mut self, line: CachedLine<'a>) {
        if line.phase.is_flow() {
            self.cached_flow(line);
        } else if self.hits.before(line.start + line.text.len()) {
            self.cached_with_hit(line);
        }
    }

    fn merge(mut self) {
        self.flush();
        if let Some(log) = &self.collector.first_spans {
            log.add(self.chunk, &mut self.scratch.first_spans);
        }
        self.collector.add_cut(self.ids.cut);
        self.collector.take_back(self.scratch);
    }
}

/// Returns a hash of a style.
fn spread(style: Style) -> u64 {
    u64::from(style.0 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Adds the events with a list to each of its requests.
fn note(batch: &mut Batch, listed: &Listed) {
    if listed.reach != RequestReach::NONE {
        for id in &listed.ids {
            batch.see_listed(*id, &listed.reach);
        }
    }
}
