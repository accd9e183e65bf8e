//! The second pass: the flow events of the requests that an event belongs to, directly behind it.
//!
//! A viewer binds a flow event to the span that began last before its time on its thread, so each carries the time at which its span begins.

use super::args::candidates::Hits;
use super::args::ids::{IdLine, RequestIds};
use super::args::list_cache::Lists;
use super::program::first_spans::FirstSpanCursor;
use super::program::flow_threads::{ThreadKeys, flow_thread};
use super::records::{EventPlace, INSTANT, Link, Mention, OwnFlow};
use super::table::Lookup;
use crate::base::number::put_front;
use crate::base::swar::text;
use crate::base::time_cache::Stamp;
use crate::clock::time_map::TimeMap;
use crate::event::flow::{global_number, write_id};
use crate::event::json::Span;
use crate::event::line::{Event, parse_canonical};
use crate::event::patch::{Id, Target, shifted};
use crate::link::args::candidates::offset;
use crate::link::binding::binds;
use crate::summary::visitor::CachedLine;
use sa_format::Phase;
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

/// The requests that the ids of a source mean, and the place of its times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkedSource {
    pub(super) number: usize,
    pub(super) recording: usize,
    pub(super) scope: u64,
    /// The offset of its times from the trace's, in ns.
    pub(super) shift_ns: i64,
}

/// The lines that a linker reads.
pub(super) struct Aim<'a> {
    pub(super) source: LinkedSource,
    pub(super) bytes: &'a [u8],
    pub(super) hits: Hits<'a>,
    /// True if the merge draws flows of its own in this time, so that the ids of each event have to be read.
    pub(super) reads_ids: bool,
    pub(super) first_spans: FirstSpanCursor<'a>,
}

/// Writes the flows of one chunk.
pub(crate) struct Linker<'a, 'l> {
    lookup: &'l mut Lookup<'a>,
    aim: Aim<'a>,
    ids: RequestIds<'a>,
    lists: Lists<'a, Vec<Link>>,
    found: FoundLinks,
    threads: ThreadKeys,
    stamp: Stamp,
    front: FlowFront,
}

/// The links of an event.
#[derive(Default)]
struct FoundLinks {
    links: Vec<Link>,
    seen: HashSet<u64>,
}

/// What the flow events of a thread have up to their time.
struct FlowFront {
    of: (Id, Id),
    text: [u8; FRONT],
    len: usize,
}

/// A flow event that an event gets.
#[derive(Clone, Copy)]
enum FlowEvent {
    /// Of the merge's own flow.
    Linked(Phase),
    /// A step of a flow of the program.
    Joined(OwnFlow),
}

impl<'a, 'l> Linker<'a, 'l> {
    pub(super) fn new(lookup: &'l mut Lookup<'a>, aim: Aim<'a>) -> Self {
        Linker {
            lookup,
            aim,
            ids: RequestIds::default(),
            lists: Lists::default(),
            found: FoundLinks::default(),
            threads: ThreadKeys::default(),
            stamp: Stamp::default(),
            front: FlowFront::new((0.into(), 0.into())),
        }
    }

    /// One that stands nowhere until it is pointed somewhere.
    pub(crate) fn nowhere(lookup: &'l mut Lookup<'a>) -> Self {
        let aim = Aim {
            source: LinkedSource::default(),
            bytes: &[],
            hits: Hits::new(&[], &[]),
            reads_ids: false,
            first_spans: FirstSpanCursor::default(),
        };
        Linker::new(lookup, aim)
    }

    /// Points it elsewhere, for example at a line of another source.
    pub(super) fn aim(&mut self, aim: Aim<'a>) {
        if self.aim.source.scope != aim.source.scope {
            self.lists = Lists::default(); // the same ids mean other requests there
        }
        self.aim = aim;
        self.ids.begin();
    }

    /// Appends the flow events of an event that was written for `target`.
    #[inline(always)]
    pub(crate) fn event(&mut self, event: &Event<'a>, target: &Target, out: &mut Vec<u8>) {
        if event.phase == Phase::FlowStart {
            if self.lookup.flows.has_leads {
                self.flow_start(event, target, out);
            }
            return;
        }
        let start = offset(self.aim.bytes, event.line);
        let place = EventPlace::new(self.aim.source.number, start, event.is_unfinished());
        let is_first = self.aim.first_spans.has(place);
        let has_ids = self.aim.reads_ids && self.aim.hits.any_in(start, start + event.line.len());
        if !(is_first || has_ids) || !binds(event) {
            return;
        }
        let end_ns = match event.phase {
            Phase::Complete => event.ts_ns.saturating_add(event.dur_ns),
            Phase::Begin => i64::MAX,
            _ => INSTANT,
        };
        let mention = self.mention(event.ts_ns, end_ns, place, (event.pid, event.tid));
        if is_first {
            self.steps(&mention, target, out);
        }
        if has_ids {
            let line = IdLine {
                text: event.line,
                start,
                args: event.fields.args,
                canonical: false,
            };
            self.links(line, &mention, target, out);
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
            thread,
        } = line;
        let place = EventPlace::new(self.aim.source.number, start, false);
        let is_first = self.aim.first_spans.has(place);
        let has_ids = self.aim.reads_ids && self.aim.hits.any_in(start, start + text.len());
        if !(is_first || has_ids) {
            if phase == Phase::FlowStart && self.lookup.flows.has_leads {
                self.cached_start(text, target, out);
            }
            return;
        }
        let end_ns = match phase {
            Phase::Complete => timed.dur_ns().map(|ns| timed.ts_ns.saturating_add(ns)),
            Phase::Instant if timed.is_of_thread() => Some(INSTANT),
            _ => None,
        };
        let Some(end_ns) = end_ns else {
            return;
        };
        let mention = self.mention(timed.ts_ns, end_ns, place, thread);
        if is_first {
            self.steps(&mention, target, out);
        }
        if has_ids {
            let line = IdLine {
                text,
                start,
                args: Span::default(),
                canonical: true,
            };
            self.links(line, &mention, target, out);
        }
    }

    /// Returns what an event is to its requests, with times on the trace's axis.
    fn mention(
        &mut self,
        ts_ns: i64,
        end_ns: i64,
        place: EventPlace,
        thread: (i64, i64),
    ) -> Mention {
        let LinkedSource {
            recording,
            shift_ns,
            ..
        } = self.aim.source;
        let mention = Mention {
            ts_ns,
            place,
            thread: self.threads.of(recording, thread),
            end_ns,
        };
        mention.placed(&TimeMap::shift(shift_ns))
    }

    /// Writes the steps of the program's flows that a span gets.
    fn steps(&mut self, mention: &Mention, target: &Target, out: &mut Vec<u8>) {
        let requests = self.aim.first_spans.requests();
        self.found.find(self.lookup, requests);
        self.write(mention, target, out, Self::step);
    }

    /// Writes the events of the merge's own flows that an event gets.
    fn links(&mut self, line: IdLine<'a>, mention: &Mention, target: &Target, out: &mut Vec<u8>) {
        let listed = self.ids.read(line, &mut self.aim.hits, &mut self.lists);
        if let Some(list) = listed.and_then(|number| self.lists.get(number)) {
            self.found.links.clone_from(&list.known);
        } else {
            let scope = self.aim.source.scope;
            let requests = self.ids.of_requests().iter().map(|id| id.key ^ scope);
            self.found.find(self.lookup, requests);
            if let Some((text, len)) = self.ids.list() {
                self.lists.keep(text, len, self.found.links.clone());
            }
        }
        self.write(mention, target, out, Self::link);
    }

    #[cold]
    fn cached_start(&mut self, text: &'a [u8], target: &Target, out: &mut Vec<u8>) {
        if let Some(event) = parse_canonical(text) {
            self.flow_start(&event, target, out);
        }
    }

    /// Ends the merge's own flow in the span in which the program starts the request's flow.
    #[cold]
    fn flow_start(&mut self, event: &Event<'a>, target: &Target, out: &mut Vec<u8>) {
        let Some(number) = global_number(event) else {
            return;
        };
        let place = EventPlace::new(self.aim.source.number, 0, false);
        let mention = self.mention(event.ts_ns, INSTANT, place, (event.pid, event.tid));
        let request = number ^ self.aim.source.scope;
        self.found.find(self.lookup, [request].into_iter());
        self.write(&mention, target, out, Self::lead_end);
    }

    /// Writes the flow events that an event gets for the links that were found.
    fn write(
        &mut self,
        mention: &Mention,
        target: &Target,
        out: &mut Vec<u8>,
        flow_event: impl Fn(&Self, &Link, &Mention) -> Option<FlowEvent>,
    ) {
        let mut shared = 0..0;
        for nth in 0..self.found.links.len() {
            let link = self.found.links[nth];
            let Some(event) = flow_event(self, &link, mention) else {
                continue;
            };
            let start = out.len();
            if shared.is_empty() {
                self.front.put((target.pid, target.tid), out);
                self.stamp.write(shifted(mention.ts_ns, 0), out);
                shared = start..out.len();
            } else {
                out.extend_from_within(shared.clone());
            }
            match event {
                FlowEvent::Linked(phase) => {
                    out[start + PHASE] = phase.byte();
                    out.extend_from_slice(br#","id":"#);
                    put_number(link.flow, out);
                    out.extend_from_slice(if phase == Phase::FlowEnd {
                        BEHIND_LAST_ID
                    } else {
                        BEHIND_ID
                    });
                    self.lookup.written.linked += 1;
                }
                FlowEvent::Joined(own) => {
                    out[start + PHASE] = Phase::FlowStep.byte();
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

    /// Returns the step that a request's first span on a thread gets, if the program draws nothing there. Viewers refuse steps outside of the flow.
    fn step(&self, link: &Link, mention: &Mention) -> Option<FlowEvent> {
        let own = link.own?;
        let is_within = own.start_ns < mention.ts_ns && mention.ts_ns < own.end_ns;
        let threads = &self.lookup.flows.threads;
        let is_drawn = mention.thread == own.thread
            || own.is_elsewhere && threads.contains(&flow_thread(&own, mention.thread));
        (is_within && !is_drawn).then_some(FlowEvent::Joined(own))
    }

    /// Returns the event of the merge's own flow that an event of a request gets.
    #[expect(clippy::unused_self, reason = "one of several that `write` takes")]
    fn link(&self, link: &Link, mention: &Mention) -> Option<FlowEvent> {
        let phase = phase(link, mention.place);
        let Some(own) = link.own else {
            return Some(FlowEvent::Linked(phase));
        };
        let is_lead = own.has_lead && mention.ts_ns < own.start_ns;
        let is_first = mention.place == link.first;
        if !is_lead || !is_first && mention.holds_start(&own) {
            return None;
        }
        Some(FlowEvent::Linked(if is_first {
            Phase::FlowStart
        } else {
            Phase::FlowStep
        }))
    }

    /// Returns the end of the merge's own flow, if a flow event is the one with which the program's flow starts.
    #[expect(clippy::unused_self, reason = "one of several that `write` takes")]
    fn lead_end(&self, link: &Link, start: &Mention) -> Option<FlowEvent> {
        let own = link.own.filter(|own| own.has_lead)?;
        let is_start = (own.start_ns, own.thread) == (start.ts_ns, start.thread);
        is_start.then_some(FlowEvent::Linked(Phase::FlowEnd))
    }
}

impl FoundLinks {
    /// Finds the links of requests, each request once.
    fn find(&mut self, lookup: &Lookup<'_>, requests: impl Iterator<Item = u64>) {
        self.links.clear();
        self.seen.clear();
        for key in requests {
            let Some(link) = lookup.find(key) else {
                continue;
            };
            let is_new = match self.links.len() < FEW {
                true => self.links.iter().all(|one| one.flow != link.flow),
                false => self.is_unseen(link.flow),
            };
            if is_new {
                self.links.push(*link);
            }
        }
    }

    fn is_unseen(&mut self, flow: u64) -> bool {
        if self.seen.is_empty() {
            self.seen.extend(self.links.iter().map(|link| link.flow));
        }
        self.seen.insert(flow)
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
fn phase(link: &Link, place: EventPlace) -> Phase {
    if place == link.first {
        Phase::FlowStart
    } else if place == link.last && !place.is_unfinished() {
        Phase::FlowEnd
    } else {
        Phase::FlowStep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flow_of_a_request_that_did_not_end_has_no_end() {
        let unfinished = EventPlace::new(0, 9, true);
        let link = |last| Link {
            flow: 1,
            first: EventPlace::new(0, 1, false),
            last,
            own: None,
        };
        assert_eq!(phase(&link(unfinished), unfinished), Phase::FlowStep);
        assert_eq!(
            phase(&link(unfinished), EventPlace::new(0, 5, true)),
            Phase::FlowStep
        );
        let done = EventPlace::new(0, 9, false);
        assert_eq!(phase(&link(done), done), Phase::FlowEnd);
        assert_eq!(phase(&link(done), link(done).first), Phase::FlowStart);
    }
}
