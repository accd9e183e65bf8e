//! The second pass: the flow events of the requests that an event belongs to, directly behind it.
//!
//! A viewer binds a flow event to the span that began last before its time on its thread, so each carries the time at which its span begins.

use super::args::candidates::Hits;
use super::args::ids::{IdLine, RequestIds};
use super::args::list_cache::Lists;
use super::origin::LinkedSource;
use super::records::{EventPlace, Link, OwnFlow};
use super::styles::{thread_key, thread_of_line};
use super::table::Lookup;
use crate::base::number::put_front;
use crate::base::swar::text;
use crate::base::time_cache::Stamp;
use crate::event::flow::write_id;
use crate::event::json::Span;
use crate::event::line::Event;
use crate::event::patch::{Id, Target};
use crate::link::args::candidates::offset;
use crate::link::binding::binds;
use crate::pass::visitor::CachedLine;
use std::collections::HashSet;
use std::io::Write;

/// What a flow event begins with; the phase is put in.
const BEFORE_TARGET: &[u8] = b",\n{\"ph\":\"t\",\"pid\":";
const PHASE: usize = b",\n{\"ph\":\"".len();
/// The longest front: `BEFORE_TARGET`, two ids of 16 digits, and what stands between and behind them.
const FRONT: usize = 64;
/// Name and category of the flows that the merge writes: a viewer tells flows apart by both, and by their id.
const BEHIND_ID: &[u8] = br#","name":"request","cat":"sa_link"}"#;
const BEHIND_LAST_ID: &[u8] = br#","bp":"e","name":"request","cat":"sa_link"}"#;
/// Of so few links each is held against all others.
const FEW: usize = 16;

/// Writes the flows of one chunk.
pub(crate) struct Linker<'a, 'l> {
    lookup: &'l mut Lookup<'a>,
    source: LinkedSource,
    bytes: &'a [u8],
    hits: Hits<'a>,
    ids: RequestIds<'a>,
    lists: Lists<'a, Vec<Link>>,
    links: Vec<Link>,
    seen: HashSet<u64>,
    stamp: Stamp,
    front: FlowFront,
}

/// What the flow events of a thread have up to their time.
struct FlowFront {
    of: (Id, Id),
    text: [u8; FRONT],
    len: usize,
}

/// An event that links begin at or lead to.
struct Mention {
    place: EventPlace,
    ts_ns: i64,
    /// When it ends, which is never for an unfinished span; absent for an instant.
    end_ns: Option<i64>,
    /// Process and thread, as recorded.
    thread: (i64, i64),
}

/// A flow event that an event gets.
#[derive(Clone, Copy)]
enum FlowEvent {
    /// Of the merge's own flow.
    Linked(u8),
    /// A step of a flow of the program.
    Joined(OwnFlow),
}

impl<'a, 'l> Linker<'a, 'l> {
    pub(super) fn new(
        lookup: &'l mut Lookup<'a>,
        source: LinkedSource,
        bytes: &'a [u8],
        hits: Hits<'a>,
    ) -> Self {
        Linker {
            lookup,
            source,
            bytes,
            hits,
            ids: RequestIds::default(),
            lists: Lists::default(),
            links: Vec::new(),
            seen: HashSet::default(),
            stamp: Stamp::default(),
            front: FlowFront::new((0.into(), 0.into())),
        }
    }

    /// One that stands nowhere until it is pointed somewhere.
    pub(crate) fn nowhere(lookup: &'l mut Lookup<'a>) -> Self {
        Linker::new(lookup, LinkedSource::default(), &[], Hits::new(&[], &[]))
    }

    /// Points it at the hits of another line, which may be of another source.
    pub(super) fn aim(&mut self, source: LinkedSource, bytes: &'a [u8], hits: Hits<'a>) {
        if self.source.scope != source.scope {
            self.lists = Lists::default(); // the same ids mean other requests there
        }
        self.source = source;
        (self.bytes, self.hits) = (bytes, hits);
        self.ids.begin();
    }

    /// Appends the flow events of an event that was written for `target`.
    #[inline(always)]
    pub(crate) fn event(&mut self, event: &Event<'a>, target: &Target, out: &mut Vec<u8>) {
        let start = offset(self.bytes, event.line);
        if self.hits.any_in(start, start + event.line.len()) && binds(event) {
            let line = IdLine {
                text: event.line,
                start,
                args: event.fields.args,
                canonical: false,
            };
            let mention = Mention {
                place: EventPlace::new(self.source.number, start, event.is_unfinished()),
                ts_ns: event.ts_ns,
                end_ns: match event.phase {
                    b'X' => Some(event.ts_ns.saturating_add(event.dur_ns)),
                    b'B' => Some(i64::MAX),
                    _ => None,
                },
                thread: (event.pid, event.tid),
            };
            self.mention(line, &mention, target, out);
        }
    }

    /// The same of one whose line begins like an earlier one.
    #[inline(always)]
    pub(crate) fn cached(&mut self, line: CachedLine<'a>, target: &Target, out: &mut Vec<u8>) {
        let CachedLine {
            phase,
            timed,
            text,
            start,
        } = line;
        if !self.hits.any_in(start, start + text.len()) {
            return;
        }
        if phase == b'X' || phase == b'i' && timed.is_of_thread() {
            let line = IdLine {
                text,
                start,
                args: Span::default(),
                canonical: true,
            };
            let dur_ns = timed.dur_ns().filter(|_| phase == b'X');
            let mention = Mention {
                place: EventPlace::new(self.source.number, start, false),
                ts_ns: timed.ts_ns,
                end_ns: dur_ns.map(|dur_ns| timed.ts_ns.saturating_add(dur_ns)),
                thread: thread_of_line(text).unwrap_or_default(),
            };
            self.mention(line, &mention, target, out);
        }
    }

    fn mention(&mut self, line: IdLine<'a>, mention: &Mention, target: &Target, out: &mut Vec<u8>) {
        let listed = self.ids.read(line, &mut self.hits, &mut self.lists);
        if let Some(list) = listed.and_then(|number| self.lists.get(number)) {
            self.links.clone_from(&list.known);
        } else {
            self.find();
            if let Some((text, len)) = self.ids.list() {
                self.lists.keep(text, len, self.links.clone());
            }
        }
        self.write(mention, target, out);
    }

    /// The links of an event, each request once.
    fn find(&mut self) {
        self.links.clear();
        let ids = self.ids.of_requests();
        let many = ids.len() > FEW;
        self.seen.clear();
        for id in ids {
            let Some(link) = self.lookup.find(id.key ^ self.source.scope) else {
                continue;
            };
            let is_new = match many {
                true => self.seen.insert(link.flow),
                false => self.links.iter().all(|one| one.flow != link.flow),
            };
            if is_new {
                self.links.push(link);
            }
        }
    }

    fn write(&mut self, mention: &Mention, target: &Target, out: &mut Vec<u8>) {
        if self.links.is_empty() {
            return;
        }
        let ts_ns = crate::event::patch::shifted(mention.ts_ns, self.source.shift_ns);
        let mut shared = 0..0;
        for link in &self.links {
            let Some(event) = self.flow_event(link, mention) else {
                continue;
            };
            let start = out.len();
            if shared.is_empty() {
                self.front.put((target.pid, target.tid), out);
                self.stamp.write(ts_ns, out);
                shared = start..out.len();
            } else {
                out.extend_from_within(shared.clone());
            }
            match event {
                FlowEvent::Linked(phase) => {
                    out[start + PHASE] = phase;
                    out.extend_from_slice(br#","id":"#);
                    put_number(link.flow, out);
                    out.extend_from_slice(if phase == b'f' {
                        BEHIND_LAST_ID
                    } else {
                        BEHIND_ID
                    });
                    self.lookup.written.linked += 1;
                }
                FlowEvent::Joined(own) => {
                    out[start + PHASE] = b't';
                    out.push(b',');
                    write_id("id", own.id, out);
                    out.push(b',');
                    out.extend_from_slice(self.lookup.flows.style(own.style));
                    out.push(b'}');
                    self.lookup.written.joined += 1;
                }
            }
        }
    }

    /// Decides which flow event an event gets for a request. On a thread on which the program draws the request's flow, it gets none.
    fn flow_event(&self, link: &Link, mention: &Mention) -> Option<FlowEvent> {
        let Some(own) = link.own else {
            return Some(FlowEvent::Linked(phase(link, mention.place)));
        };
        let LinkedSource {
            recording,
            shift_ns,
            ..
        } = self.source;
        let first_ns = mention.ts_ns.saturating_add(shift_ns);
        let end_ns = mention.end_ns.map(|end_ns| end_ns.saturating_add(shift_ns));
        let is_started = own.start_ns <= first_ns;
        let is_first = mention.place == link.first;
        // Without another event before the program's flow, the start would lead nowhere.
        if is_first && !is_started && !own.has_lead {
            return None;
        }
        let thread = thread_key(own.id, own.style, recording, mention.thread);
        let holds_start = |end_ns| (first_ns..=end_ns).contains(&own.start_ns);
        if thread == own.thread && end_ns.is_some_and(holds_start) {
            // Arrows of the merge lead up to the span in which the program's flow starts.
            let phase = if is_first { b's' } else { b'f' };
            return (!is_started).then_some(FlowEvent::Linked(phase));
        }
        match is_started {
            // Instants often come after the end of the program's flow, and a step there would lead nowhere.
            true if end_ns.is_none() => None,
            true => (!self.lookup.flows.threads.has(thread)).then_some(FlowEvent::Joined(own)),
            false if is_first => Some(FlowEvent::Linked(b's')),
            false => Some(FlowEvent::Linked(b't')),
        }
    }
}

impl FlowFront {
    fn new(of: (Id, Id)) -> FlowFront {
        let mut text = [0; FRONT];
        let mut left = text.as_mut_slice();
        let parts = [BEFORE_TARGET, &of.0, br#","tid":"#, &of.1, br#","ts":"#];
        // Writing to bytes fails only where they are too few, and there is room for the longest ids.
        let written = parts.iter().try_for_each(|part| left.write_all(part));
        debug_assert!(written.is_ok());
        let len = FRONT - left.len();
        FlowFront { of, text, len }
    }

    #[inline(always)]
    fn put(&mut self, of: (Id, Id), out: &mut Vec<u8>) {
        if self.of != of {
            *self = FlowFront::new(of);
        }
        put_front(&self.text, self.len, out);
    }
}

#[inline(always)]
fn put_number(number: u64, out: &mut Vec<u8>) {
    match text(number) {
        Some((digits, len)) => put_front(&digits, len, out),
        None => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
    }
}

/// The first event starts the flow, the last one ends it: unless that has not ended itself, for nobody knows what came then.
fn phase(link: &Link, place: EventPlace) -> u8 {
    if place == link.first {
        b's'
    } else if place == link.last && !place.is_unfinished() {
        b'f'
    } else {
        b't'
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flow_of_a_request_that_did_not_end_has_no_end() {
        let unfinished = EventPlace::new(0, 9, true);
        let link = |last| Link {
            key: 0,
            flow: 1,
            first: EventPlace::new(0, 1, false),
            last,
            own: None,
        };
        assert_eq!(phase(&link(unfinished), unfinished), b't');
        assert_eq!(phase(&link(unfinished), EventPlace::new(0, 5, true)), b't');
        let done = EventPlace::new(0, 9, false);
        assert_eq!(phase(&link(done), done), b'f');
        assert_eq!(phase(&link(done), link(done).first), b's');
    }
}
