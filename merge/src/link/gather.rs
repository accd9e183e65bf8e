//! The first pass: which requests the events of a chunk belong to, and where the first and the last event of each stands.

use super::args::candidates::{Hits, offset};
use super::args::form::forms;
use super::args::ids::{IdLine, RequestId, RequestIds};
use super::args::list_cache::Lists;
use super::batch::Batch;
use super::binding::binds;
use super::collector::Collector;
use super::origin::ChunkOrigin;
use super::records::{Alias, EventPlace, FlowPhases, ProgramFlow, RequestReach};
use super::styles::{Style, StyleCache, members_after_id, members_of, thread_key, thread_of_line};
use crate::event::flow;
use crate::event::json::Span;
use crate::event::line::{Event, parse_canonical};
use crate::event::scan::Part;
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use crate::pass::visitor::{CachedLine, ChunkVisitor, Visitor};
use std::collections::hash_map::Entry;
use xxhash_rust::xxh3::xxh3_64;

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
    batch: Batch,
    styles: StyleCache,
}

/// An event of a flow.
struct FlowEvent {
    /// Its id in the trace.
    id: u64,
    style: Style,
    /// The number of a flow that is the same in every process.
    global: Option<u64>,
    is_start: bool,
    ts_ns: i64,
    /// Process and thread, as recorded.
    thread: (i64, i64),
}

/// The requests of a list, and where events with it stand that were not yet noted of each of them.
struct Listed {
    keys: Vec<u64>,
    reach: RequestReach,
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
            batch: Batch::new(rayon::current_num_threads()),
            styles: StyleCache::default(),
        }
    }

    fn cached_flow(&mut self, line: CachedLine<'a>) {
        let CachedLine {
            phase, timed, text, ..
        } = line;
        let known = timed.flow_id().and_then(|(id2, rest)| {
            Some(FlowEvent {
                id: flow::of_id2(id2, self.ordinal())?,
                style: self
                    .styles
                    .get(members_after_id(rest)?, &self.collector.styles)?,
                global: timed.global_flow(),
                is_start: phase == b's',
                ts_ns: timed.ts_ns,
                thread: thread_of_line(text)?,
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
        let style =
            members_of(event).and_then(|text| self.styles.get(&text, &self.collector.styles));
        let id = flow::trace_id(event, self.ordinal());
        if let Some(style) = style
            && let Some((id, _)) = id
        {
            self.flow(&FlowEvent {
                id,
                style,
                global,
                is_start: event.phase == b's',
                ts_ns: event.ts_ns,
                thread: (event.pid, event.tid),
            });
        }
    }

    /// Returns the number that scopes the local flow ids of this recording.
    fn ordinal(&self) -> u64 {
        self.origin.recording as u64
    }

    fn flow(&mut self, of: &FlowEvent) {
        let ChunkOrigin {
            scope,
            clock,
            recording,
            is_ours,
            ..
        } = self.origin;
        if is_ours {
            let key = of.id ^ xxh3_64(&of.style.0.to_le_bytes());
            let phases = self.batch.phases.entry(key).or_insert(FlowPhases {
                key,
                style: of.style,
                has_start: false,
                has_other: false,
            });
            phases.has_start |= of.is_start;
            phases.has_other |= !of.is_start;
        }
        if let Some(number) = of.global {
            let thread = thread_key(of.id, of.style, recording, of.thread);
            self.batch.flow_threads.insert(thread, ());
            if of.is_start {
                self.batch.flows.push(ProgramFlow {
                    key: number ^ scope,
                    clock,
                    start_ns: of.ts_ns,
                    style: of.style,
                    id: of.id,
                    thread,
                });
            }
        }
        if self.batch.is_full() {
            self.flush();
        }
    }

    fn cached_with_hit(&mut self, line: CachedLine<'a>) {
        let CachedLine {
            phase,
            timed,
            text,
            start,
        } = line;
        let is_span = phase == b'X' || phase == b'i' && timed.is_of_thread();
        if is_span && self.hits.first_in(start, start + text.len()).is_some() {
            let line = IdLine {
                text,
                start,
                args: Span::default(),
                canonical: true,
            };
            self.mentions(line, self.chunk.shown_start_ns(timed.ts_ns), false);
        }
    }

    fn mentions(&mut self, line: IdLine<'a>, ts_ns: i64, unfinished: bool) {
        let place = EventPlace::new(self.origin.source, line.start, unfinished);
        let at = (ts_ns, place);
        let listed = self.ids.read(line, &mut self.hits, &mut self.lists);
        if let Some(list) = listed.and_then(|number| self.lists.get(number)) {
            return list.known.reach.see(at);
        }
        let scope = self.origin.scope;
        let collector = self.collector;
        let linked = |id: &&RequestId<'_>| collector.links(id);
        for id in self.ids.of_requests().iter().filter(linked) {
            let aliases = &mut self.batch.aliases;
            match self.batch.requests.entry(id.key ^ scope) {
                Entry::Occupied(mut known) => known.get_mut().see(at),
                Entry::Vacant(new) => {
                    new.insert(RequestReach::of(ts_ns, place));
                    add_forms(id, scope, aliases);
                }
            }
        }
        self.client();
        if let Some((text, len)) = self.ids.list() {
            self.keep(text, len);
        }
        if self.batch.is_full() {
            self.flush();
        }
    }

    /// Notes that an id of the client and those of the engine are of the same request.
    fn client(&mut self) {
        let Some(client) = self.ids.client() else {
            return;
        };
        let scope = self.origin.scope;
        let other = client.key ^ scope;
        let alias = |id: &RequestId<'_>| Alias {
            other,
            id: id.key ^ scope,
            reason: 0,
        };
        let inside = self.ids.of_requests().iter().map(alias);
        self.batch.aliases.extend(inside);
    }

    /// Keeps a list: the next event with it is noted of all its requests at once.
    fn keep(&mut self, text: &'a [u8], len: usize) {
        let collector = self.collector;
        let ids = self.ids.of_requests().iter();
        let keys = ids.filter(|id| collector.links(id));
        let listed = Listed {
            keys: keys.map(|id| id.key ^ self.origin.scope).collect(),
            reach: RequestReach::NONE,
        };
        if let Some(forgotten) = self.lists.keep(text, len, listed) {
            note(&mut self.batch, &forgotten);
        }
    }

    fn flush(&mut self) {
        for listed in self.lists.take() {
            note(&mut self.batch, &listed);
        }
        self.collector.add(&mut self.batch, self.origin);
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
        if matches!(event.phase, b's' | b't' | b'f') {
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
            let ts_ns = shown.as_ref().unwrap_or(event).ts_ns;
            self.mentions(line, ts_ns, event.is_unfinished());
        }
    }

    #[inline(always)]
    fn cached(&mut self, line: CachedLine<'a>) {
        if matches!(line.phase, b's' | b't' | b'f') {
            self.cached_flow(line);
        } else if self.hits.before(line.start + line.text.len()) {
            self.cached_with_hit(line);
        }
    }

    fn merge(mut self) {
        self.flush();
        self.collector.add_cut(self.ids.cut);
    }
}

/// Notes of each request of a list where events with it stand.
fn note(batch: &mut Batch, listed: &Listed) {
    if listed.reach == RequestReach::NONE {
        return;
    }
    for key in &listed.keys {
        let known = batch.requests.entry(*key).or_insert(listed.reach);
        known.add(&listed.reach);
    }
}

/// The shorter the form, the better: it is what a client or proxy knows.
fn add_forms(id: &RequestId<'_>, scope: u64, aliases: &mut Vec<Alias>) {
    forms(&id.text(), |form| {
        aliases.push(Alias {
            other: xxhash_rust::xxh3::xxh3_64(form) ^ scope,
            id: id.key ^ scope,
            reason: form.len() as u64,
        });
    });
}
