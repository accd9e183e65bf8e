//! The first pass: which requests the events of a chunk belong to, and where the first and the last event of each stands.

use super::args::candidates::{Hits, offset};
use super::args::form::forms;
use super::args::ids::{IdLine, RequestId, RequestIds};
use super::args::list_cache::Lists;
use super::batch::Batch;
use super::binding::binds;
use super::collector::Collector;
use super::origin::ChunkOrigin;
use super::records::{Alias, EventPlace, RequestReach};
use crate::event::flow;
use crate::event::json::Span;
use crate::event::line::Event;
use crate::event::prefix_cache::Timed;
use crate::event::scan::Part;
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use crate::pass::visitor::{CachedLine, ChunkVisitor, Visitor};
use std::collections::hash_map::Entry;

/// Looks at the events of one chunk.
pub(crate) struct Gather<'a, 'f> {
    collector: &'a Collector<'f>,
    origin: ChunkOrigin,
    bytes: &'a [u8],
    hits: Hits<'a>,
    ids: RequestIds<'a>,
    lists: Lists<'a, Listed>,
    batch: Batch,
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
        parts: &'a [Part],
    ) -> Self {
        Gather {
            collector,
            origin,
            bytes,
            hits: Hits::new(bytes, parts),
            ids: RequestIds::default(),
            lists: Lists::default(),
            batch: Batch::new(rayon::current_num_threads()),
        }
    }

    fn cached_flow(&mut self, timed: Timed<'a>) {
        if !timed.has_local_flow() {
            let other = || flow::global_number_of(timed.flow_id()?.0);
            self.linked(timed.global_flow().or_else(other));
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
            self.mentions(line, timed.ts_ns, false);
        }
    }

    fn linked(&mut self, flow: Option<u64>) {
        let key = flow.map(|number| number ^ self.origin.scope);
        self.batch.linked.extend(key);
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
        Gather::new(self, origin, source.bytes, &chunk.parts)
    }
}

impl<'a> ChunkVisitor<'a> for Gather<'a, '_> {
    fn enter(&mut self, part: Part) {
        self.hits.enter(part);
    }

    #[inline]
    fn event(&mut self, event: &Event<'a>) {
        if event.phase == b's' {
            return self.linked(flow::global_number(event));
        }
        let start = offset(self.bytes, event.line);
        if self.hits.any_in(start, start + event.line.len()) && binds(event) {
            let line = IdLine {
                text: event.line,
                start,
                args: event.fields.args,
                canonical: false,
            };
            self.mentions(line, event.ts_ns, event.is_unfinished());
        }
    }

    #[inline(always)]
    fn cached(&mut self, line: CachedLine<'a>) {
        if line.phase == b's' {
            self.cached_flow(line.timed);
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
