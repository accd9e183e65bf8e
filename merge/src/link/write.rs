//! The second pass: the flow events of the requests that an event belongs to, directly behind it.
//!
//! A viewer binds a flow event to the span that began last before its time on its thread, so each carries the time at which its span begins.

use super::args::candidates::Hits;
use super::args::ids::{IdLine, RequestIds};
use super::args::list_cache::Lists;
use super::origin::LinkedSource;
use super::records::{EventPlace, Link};
use super::table::Lookup;
use crate::base::number::put_front;
use crate::base::swar::text;
use crate::base::time_cache::Stamp;
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
            let mention = Mention {
                place: EventPlace::new(self.source.number, start, false),
                ts_ns: timed.ts_ns,
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
            let start = out.len();
            if shared.is_empty() {
                self.front.put((target.pid, target.tid), out);
                self.stamp.write(ts_ns, out);
                out.extend_from_slice(br#","id":"#);
                shared = start..out.len();
            } else {
                out.extend_from_within(shared.clone());
            }
            let phase = phase(link, mention.place);
            out[start + PHASE] = phase;
            put_number(link.flow, out);
            out.extend_from_slice(if phase == b'f' {
                BEHIND_LAST_ID
            } else {
                BEHIND_ID
            });
        }
        self.lookup.written += self.links.len() as u64;
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
        };
        assert_eq!(phase(&link(unfinished), unfinished), b't');
        assert_eq!(phase(&link(unfinished), EventPlace::new(0, 5, true)), b't');
        let done = EventPlace::new(0, 9, false);
        assert_eq!(phase(&link(done), done), b'f');
        assert_eq!(phase(&link(done), link(done).first), b's');
    }
}
