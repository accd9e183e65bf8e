//! The second pass: writes the flow events of the requests that an event belongs to, directly after
//! it.
//!
//! A viewer binds a flow event to the last span on its thread that began before its time. So each
//! flow event has the time at which its span begins.

use super::args::candidates::{Hits, offset};
use super::args::ids::{Lists, RequestIds};
use super::collector::Origin;
use super::mention::{EventPosition, Mention, ThreadKeys, can_bind_flow};
use super::program::first_spans::FirstSpanLinks;
use super::table::{Link, LinkTable, Lookup, ProgramFlow};
use crate::base::number::write_micros;
use crate::clock::time_map::TimeMap;
use crate::event::flow::{global_number, write_id};
use crate::event::line::Event;
use crate::event::patch::{Target, shifted};
use crate::summary::summarize::CachedLine;
use sa_format::Phase;
use trace_store::hashed_map::HashedSet;

/// Start of a flow event; the phase is replaced.
const BEFORE_TARGET: &[u8] = b",\n{\"ph\":\"t\",\"pid\":";
const PHASE: usize = b",\n{\"ph\":\"".len();
/// Name and category of the flows that the merge writes. A viewer distinguishes flows by both and
/// by their id.
const AFTER_ID: &[u8] = br#","name":"request","cat":"sa_link"}"#;
const AFTER_LAST_ID: &[u8] = br#","bp":"e","name":"request","cat":"sa_link"}"#;

/// Maximum number of links that are compared with each other. More links are looked up in a set.
const MAX_LINEAR: usize = 16;

/// The lines that a linker reads, and their context.
#[derive(Default)]
pub(super) struct LinkerInput<'a> {
    /// Number of their source.
    pub(super) source: usize,
    pub(super) origin: Origin,
    /// Offset of their times from the trace's, in ns.
    pub(super) shift_ns: i64,
    pub(super) bytes: &'a [u8],
    pub(super) hits: Hits<'a>,
    /// True if the merge draws flows of its own in this period, so that the ids of each event must
    /// be read.
    pub(super) reads_ids: bool,
    pub(super) first_spans: FirstSpanLinks,
}

/// Writes the flow events of one chunk.
pub(crate) struct Linker<'a, 'l> {
    lookup: &'l mut Lookup<'a>,
    input: LinkerInput<'a>,
    ids: RequestIds<'a>,
    lists: Lists<'a, Vec<Link>>,
    found: FoundLinks,
    threads: ThreadKeys,
}

/// Links of an event.
#[derive(Default)]
struct FoundLinks {
    links: Vec<Link>,
    flows: HashedSet,
}

/// A flow event to write after an event.
#[derive(Clone, Copy)]
enum FlowEvent {
    /// Event of the merge's own flow.
    Linked(Phase),
    /// Step of a flow of the program.
    Joined(ProgramFlow),
}

impl<'a, 'l> Linker<'a, 'l> {
    pub(super) fn new(lookup: &'l mut Lookup<'a>, input: LinkerInput<'a>) -> Self {
        Linker {
            lookup,
            input,
            ids: RequestIds::default(),
            lists: Lists::default(),
            found: FoundLinks::default(),
            threads: ThreadKeys::default(),
        }
    }

    /// Creates a linker that must be prepared for each line.
    pub(crate) fn without_input(lookup: &'l mut Lookup<'a>) -> Self {
        Linker::new(lookup, LinkerInput::default())
    }

    /// Sets the source of the lines that the linker reads next.
    pub(super) fn set_input(&mut self, input: LinkerInput<'a>) {
        if self.input.origin.scope != input.origin.scope {
            self.lists = Lists::default(); // the same ids mean other requests in another run
        }
        self.input = input;
        self.ids.begin_chunk();
    }

    /// Appends the flow events of an event that was written for `target`.
    #[inline(always)]
    pub(crate) fn event(&mut self, event: &Event<'a>, target: &Target, out: &mut Vec<u8>) {
        if event.phase == Phase::FlowStart {
            if self.lookup.table.has_prior_links {
                self.flow_start(event, target, out);
            }
            return;
        }
        let start = offset(self.input.bytes, event.line);
        let position = EventPosition::new(self.input.source, start, event.is_unfinished());
        let is_first = self.input.first_spans.has(position);
        let has_ids = self.has_ids(start, event.line);
        if is_first || has_ids {
            self.write_event(event, is_first, has_ids, target, out);
        }
    }

    /// Appends the flow events of an event whose line begins like an earlier one.
    #[inline(always)]
    pub(crate) fn cached(&mut self, line: CachedLine<'a>, target: &Target, out: &mut Vec<u8>) {
        if line.phase.is_flow() {
            if line.phase == Phase::FlowStart
                && self.lookup.table.has_prior_links
                && let Some(event) = line.event()
            {
                self.flow_start(&event, target, out);
            }
            return;
        }
        let position = EventPosition::new(self.input.source, line.start, false);
        let is_first = self.input.first_spans.has(position);
        let has_ids = self.has_ids(line.start, line.text);
        if (is_first || has_ids)
            && let Some(event) = line.event()
        {
            self.write_event(&event, is_first, has_ids, target, out);
        }
    }

    /// Appends the flow events of an event that is the first span of a request on its thread, or
    /// that may have ids.
    #[inline(always)]
    fn write_event(
        &mut self,
        event: &Event<'a>,
        is_first: bool,
        has_ids: bool,
        target: &Target,
        out: &mut Vec<u8>,
    ) {
        if !can_bind_flow(event) {
            return;
        }
        let start = offset(self.input.bytes, event.line);
        let position = EventPosition::new(self.input.source, start, event.is_unfinished());
        let mention = self.mention(event, position);
        if is_first {
            self.write_steps(&mention, target, out);
        }
        if has_ids {
            self.write_links(event, start, &mention, target, out);
        }
    }

    #[inline(always)]
    fn has_ids(&mut self, start: usize, line: &[u8]) -> bool {
        self.input.reads_ids && self.input.hits.any_in(start, start + line.len())
    }

    /// Creates the mention for an event, with times on the trace's axis.
    fn mention(&mut self, event: &Event<'_>, position: EventPosition) -> Mention {
        let thread = (event.pid, event.tid);
        let thread = self.threads.key(self.input.origin.recording, thread);
        Mention::from_event(event, position, thread).on_axis(&TimeMap::shift(self.input.shift_ns))
    }

    /// Writes the steps of the program's flows that a span gets.
    fn write_steps(&mut self, mention: &Mention, target: &Target, out: &mut Vec<u8>) {
        self.found.set(self.input.first_spans.links());
        self.write(mention, target, out, |link, table| {
            link.step(mention, &table.threads).map(FlowEvent::Joined)
        });
    }

    /// Writes the events of the merge's own flows that an event gets.
    fn write_links(
        &mut self,
        event: &Event<'a>,
        start: usize,
        mention: &Mention,
        target: &Target,
        out: &mut Vec<u8>,
    ) {
        let listed = self
            .ids
            .read(event, start, &mut self.input.hits, &mut self.lists);
        if let Some(links) = listed {
            self.found.links.clone_from(links);
        } else {
            let scope = self.input.origin.scope;
            let table = self.lookup.table;
            let requests = self.ids.request_ids().iter();
            self.found
                .set(requests.filter_map(|id| table.find(id.key ^ scope)));
            if let Some((text, len)) = self.ids.list() {
                self.lists.insert(text, len, self.found.links.clone());
            }
        }
        self.write(mention, target, out, |link, _| {
            link.phase(mention).map(FlowEvent::Linked)
        });
    }

    /// Ends the merge's own flow in the span in which the program starts the request's flow.
    #[cold]
    fn flow_start(&mut self, event: &Event<'a>, target: &Target, out: &mut Vec<u8>) {
        let Some(number) = global_number(event) else {
            return;
        };
        let mention = self.mention(event, EventPosition::new(self.input.source, 0, false));
        let request = number ^ self.input.origin.scope;
        self.found.set(self.lookup.table.find(request).into_iter());
        self.write(&mention, target, out, |link, _| {
            let ends = link.ends_at(&mention);
            ends.then_some(FlowEvent::Linked(Phase::FlowEnd))
        });
    }

    /// Writes the flow events of an event for the links that were found.
    fn write(
        &mut self,
        mention: &Mention,
        target: &Target,
        out: &mut Vec<u8>,
        flow_event: impl Fn(&Link, &LinkTable) -> Option<FlowEvent>,
    ) {
        let mut shared = 0..0;
        for link in &self.found.links {
            let Some(event) = flow_event(link, self.lookup.table) else {
                continue;
            };
            let start = out.len();
            if shared.is_empty() {
                for part in [
                    BEFORE_TARGET,
                    &target.pid,
                    br#","tid":"#,
                    &target.tid,
                    br#","ts":"#,
                ] {
                    out.extend_from_slice(part);
                }
                write_micros(shifted(mention.ts_ns, 0), out);
                shared = start..out.len();
            } else {
                out.extend_from_within(shared.clone());
            }
            match event {
                FlowEvent::Linked(phase) => {
                    out[start + PHASE] = phase.byte();
                    out.extend_from_slice(br#","id":"#);
                    out.extend_from_slice(itoa::Buffer::new().format(link.flow).as_bytes());
                    out.extend_from_slice(if phase == Phase::FlowEnd {
                        AFTER_LAST_ID
                    } else {
                        AFTER_ID
                    });
                    self.lookup.written.linked += 1;
                }
                FlowEvent::Joined(flow) => {
                    out[start + PHASE] = Phase::FlowStep.byte();
                    out.push(b',');
                    write_id("id", flow.id, out);
                    out.push(b',');
                    out.extend_from_slice(self.lookup.table.style(flow.style));
                    out.push(b'}');
                    self.lookup.written.joined += 1;
                }
            }
        }
    }
}

impl FoundLinks {
    /// Replaces the links, and drops duplicates.
    fn set<'t>(&mut self, links: impl Iterator<Item = &'t Link>) {
        self.links.clear();
        self.flows.clear();
        for link in links {
            let is_new = match self.links.len() < MAX_LINEAR {
                true => self.links.iter().all(|one| one.flow != link.flow),
                false => self.is_new(link.flow),
            };
            if is_new {
                self.links.push(*link);
            }
        }
    }

    fn is_new(&mut self, flow: u64) -> bool {
        if self.flows.is_empty() {
            self.flows.extend(self.links.iter().map(|link| link.flow));
        }
        self.flows.insert(flow)
    }
}
