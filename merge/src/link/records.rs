//! Facts about requests and flows: those that the first pass collects, and those that the second pass needs. Flows are sorted as records, in temporary files
//! if they are many.

use super::program::styles::Style;
use crate::clock::time_map::TimeMap;
use crate::store::sorter::Record;

const UNFINISHED: u64 = 1;
const OFFSET_BITS: u32 = 40;

/// The place of an event: its source, its offset there, and whether it is an unfinished span. Each event has its own, in the order of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventPlace(pub(super) u64);

impl EventPlace {
    pub(super) fn new(source: usize, offset: usize, unfinished: bool) -> EventPlace {
        let place = (source as u64) << OFFSET_BITS | offset as u64;
        EventPlace(place << 1 | if unfinished { UNFINISHED } else { 0 })
    }

    pub(super) fn is_unfinished(self) -> bool {
        self.0 & UNFINISHED != 0
    }
}

/// `end_ns` of an instant, which is no span.
pub(super) const INSTANT: i64 = i64::MIN;

/// An event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mention {
    pub(super) ts_ns: i64,
    pub(super) place: EventPlace,
    /// The key of its thread ([`super::program::flow_threads::ThreadKeys`]).
    pub(super) thread: u64,
    /// Its end: `i64::MAX` for an unfinished span, [`INSTANT`] for an instant.
    pub(super) end_ns: i64,
}

impl Mention {
    /// Returns true if it is a span and not an instant.
    pub(super) fn is_span(&self) -> bool {
        self.end_ns != INSTANT
    }

    /// Returns true if it is a span in which the program starts this flow.
    pub(super) fn holds_start(&self, flow: &OwnFlow) -> bool {
        self.thread == flow.thread && (self.ts_ns..=self.end_ns).contains(&flow.start_ns)
    }

    /// Moves it to another time axis.
    pub(super) fn placed(self, map: &TimeMap) -> Mention {
        Mention {
            ts_ns: map.at(self.ts_ns),
            end_ns: match self.end_ns {
                INSTANT | i64::MAX => self.end_ns,
                end_ns => map.at(end_ns),
            },
            ..self
        }
    }
}

/// The first event of a request, time and place of the last one, and the time of the second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestReach {
    pub(super) first: Mention,
    /// `i64::MAX` if there is only one event.
    pub(super) second_ns: i64,
    pub(super) last: (i64, EventPlace),
}

impl RequestReach {
    /// The reach of no event.
    pub(super) const NONE: RequestReach = RequestReach {
        first: Mention {
            ts_ns: i64::MAX,
            place: EventPlace(u64::MAX),
            thread: 0,
            end_ns: INSTANT,
        },
        second_ns: i64::MAX,
        last: (i64::MIN, EventPlace(0)),
    };

    pub(super) fn of(mention: Mention) -> RequestReach {
        RequestReach {
            first: mention,
            second_ns: i64::MAX,
            last: (mention.ts_ns, mention.place),
        }
    }

    /// Adds an event.
    #[inline(always)]
    pub(super) fn see(&mut self, mention: &Mention) {
        if *mention < self.first {
            (self.first, self.second_ns) = (*mention, self.first.ts_ns);
        } else if *mention > self.first {
            self.second_ns = self.second_ns.min(mention.ts_ns);
        }
        self.last = self.last.max((mention.ts_ns, mention.place));
    }

    /// Adds other events.
    pub(super) fn add(&mut self, other: &RequestReach) {
        let (first, later) = (self.first.min(other.first), self.first.max(other.first));
        self.second_ns = self.second_ns.min(other.second_ns);
        // If both begin with the same event, it is not the second one.
        if later > first {
            self.second_ns = self.second_ns.min(later.ts_ns);
        }
        self.first = first;
        self.last = self.last.max(other.last);
    }

    /// Moves it to another time axis.
    pub(super) fn placed(self, map: &TimeMap) -> RequestReach {
        if self == RequestReach::NONE {
            return self;
        }
        RequestReach {
            first: self.first.placed(map),
            second_ns: match self.second_ns {
                i64::MAX => i64::MAX,
                second_ns => map.at(second_ns),
            },
            last: (map.at(self.last.0), self.last.1),
        }
    }

    /// Returns true if it has more than one event.
    pub(super) fn is_chain(&self) -> bool {
        self.first.place < EventPlace(u64::MAX) && self.first.place != self.last.1
    }
}

/// What one thread draws of a flow that may be a request's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProgramFlow {
    /// The key of the id that the flow stands for.
    pub(super) key: u64,
    /// Its id in the trace.
    pub(super) id: u64,
    pub(super) style: Style,
    /// The key of the thread.
    pub(super) thread: u64,
    pub(super) clock: u32,
    /// The time of the first start; `i64::MAX` if it does not start here.
    pub(super) start_ns: i64,
    /// The time of the first end; `i64::MAX` if it does not end here.
    pub(super) end_ns: i64,
    /// True if one of our recordings has a start of it here.
    pub(super) has_our_start: bool,
    /// True if one of our recordings has a step or an end of it here.
    pub(super) has_our_rest: bool,
}

impl ProgramFlow {
    pub(super) fn is_same_flow(&self, other: &ProgramFlow) -> bool {
        (self.key, self.id, self.style) == (other.key, other.id, other.style)
    }

    /// Adds what the same thread draws otherwise.
    pub(super) fn add(&mut self, other: &ProgramFlow) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.min(other.end_ns);
        self.has_our_start |= other.has_our_start;
        self.has_our_rest |= other.has_our_rest;
    }

    /// Moves it to another time axis.
    pub(super) fn placed(self, map: &TimeMap) -> ProgramFlow {
        let placed = |ns| match ns {
            i64::MAX => i64::MAX,
            ns => map.at(ns),
        };
        ProgramFlow {
            clock: u32::MAX,
            start_ns: placed(self.start_ns),
            end_ns: placed(self.end_ns),
            ..self
        }
    }
}

/// Which events there are of a flow of a single process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowPhases {
    /// The flow's id in the trace, combined with its style.
    pub(super) key: u64,
    pub(super) style: Style,
    pub(super) has_start: bool,
    pub(super) has_other: bool,
}

/// The flow of a request, and the events with which it begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// The number of the merge's own flow.
    pub(super) flow: u64,
    pub(super) first: EventPlace,
    pub(super) last: EventPlace,
    /// The flow that the program draws for it.
    pub(super) own: Option<OwnFlow>,
}

/// A flow that the program draws, which the merge continues where the program does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnFlow {
    /// Its id in the trace, which is never 0.
    pub(super) id: u64,
    pub(super) style: Style,
    /// When it starts, on the axis of the trace.
    pub(super) start_ns: i64,
    /// When it ends, which is never if nothing ends it.
    pub(super) end_ns: i64,
    /// The key of the thread on which it starts.
    pub(super) thread: u64,
    /// True if arrows lead up to its start, because the request has an event before that.
    pub(super) has_lead: bool,
    /// True if the program draws it on other threads, too.
    pub(super) is_elsewhere: bool,
}

/// An id of a request for which there was no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DroppedRequest {
    /// The hash that the ids of the request have in common.
    pub(super) family: u64,
    /// The place of any of its events.
    place: EventPlace,
    /// True if it has more than one event.
    is_chain: bool,
}

impl DroppedRequest {
    pub(super) fn new(family: u64, reach: &RequestReach) -> DroppedRequest {
        DroppedRequest {
            family,
            place: reach.first.place,
            is_chain: reach.is_chain(),
        }
    }

    /// Returns true if the request has at least two events, between which there would be an arrow.
    pub(super) fn is_chain(&self) -> bool {
        self.is_chain
    }
}

fn store<const N: usize>(numbers: [u64; N], out: &mut Vec<u8>) {
    numbers
        .iter()
        .for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

fn load<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let (numbers, _) = bytes.as_chunks::<8>();
    let numbers = numbers.first_chunk::<N>().copied().unwrap_or([[0; 8]; N]);
    numbers.map(u64::from_le_bytes)
}

fn bit(is_set: bool, bit: u64) -> u64 {
    if is_set { bit } else { 0 }
}

impl Record for ProgramFlow {
    const BYTES: usize = 48;

    fn store(&self, out: &mut Vec<u8>) {
        let bits = bit(self.has_our_start, 1 << 31) | bit(self.has_our_rest, 1 << 30);
        let numbers = u64::from(self.clock) << 32 | u64::from(self.style.0) | bits;
        let [start_ns, end_ns] = [self.start_ns, self.end_ns].map(i64::cast_unsigned);
        store([self.key, self.id, numbers, self.thread], out);
        store([start_ns, end_ns], out);
    }

    fn load(bytes: &[u8]) -> ProgramFlow {
        let [key, id, numbers, thread, start_ns, end_ns] = load(bytes);
        ProgramFlow {
            key,
            id,
            style: style_of(numbers & ((1 << 30) - 1)),
            thread,
            clock: u32::try_from(numbers >> 32).unwrap_or(u32::MAX),
            start_ns: start_ns.cast_signed(),
            end_ns: end_ns.cast_signed(),
            has_our_start: numbers & 1 << 31 != 0,
            has_our_rest: numbers & 1 << 30 != 0,
        }
    }

    /// Makes what a thread draws of a flow one record.
    fn join(&mut self, next: &ProgramFlow) -> bool {
        let is_same = self.is_same_flow(next) && self.thread == next.thread;
        if is_same {
            self.add(next);
        }
        is_same
    }
}

impl Record for FlowPhases {
    const BYTES: usize = 16;

    fn store(&self, out: &mut Vec<u8>) {
        let phases = u64::from(self.has_start) << 1 | u64::from(self.has_other);
        store([self.key, u64::from(self.style.0) << 2 | phases], out);
    }

    fn load(bytes: &[u8]) -> FlowPhases {
        let [key, numbers] = load(bytes);
        FlowPhases {
            key,
            style: style_of(numbers >> 2),
            has_start: numbers & 2 != 0,
            has_other: numbers & 1 != 0,
        }
    }

    fn join(&mut self, next: &FlowPhases) -> bool {
        let is_same = self.key == next.key;
        if is_same {
            self.has_start |= next.has_start;
            self.has_other |= next.has_other;
        }
        is_same
    }
}

impl Record for DroppedRequest {
    const BYTES: usize = 24;

    fn store(&self, out: &mut Vec<u8>) {
        store([self.family, self.place.0, self.is_chain.into()], out);
    }

    fn load(bytes: &[u8]) -> DroppedRequest {
        let [family, place, is_chain] = load(bytes);
        DroppedRequest {
            family,
            place: EventPlace(place),
            is_chain: is_chain != 0,
        }
    }

    /// Makes the ids of a request one.
    fn join(&mut self, next: &DroppedRequest) -> bool {
        let is_same = self.family == next.family;
        if is_same {
            self.is_chain |= next.is_chain || self.place != next.place;
        }
        is_same
    }
}

fn style_of(number: u64) -> Style {
    Style(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mention(ts_ns: i64, place: EventPlace) -> Mention {
        Mention {
            ts_ns,
            place,
            thread: 3,
            end_ns: ts_ns + 1,
        }
    }

    #[test]
    fn a_chain_has_two_events() {
        assert!(!RequestReach::NONE.is_chain());
        let mut reach = RequestReach::of(mention(1, EventPlace(2)));
        assert!(!reach.is_chain());
        reach.see(&mention(1, EventPlace(3)));
        assert!(reach.is_chain());
        let none = RequestReach::NONE;
        assert_eq!(none.placed(&TimeMap::shift(9)), none);
    }

    #[test]
    fn ids_of_one_dropped_request_are_counted_once() {
        let request = |family, place| {
            let reach = RequestReach::of(mention(1, EventPlace(place)));
            DroppedRequest::new(family, &reach)
        };
        let mut one = request(4, 1);
        assert!(one.join(&request(4, 1)) && !one.is_chain());
        assert!(!one.join(&request(5, 2)) && !one.is_chain());
        assert!(one.join(&request(4, 2)) && one.is_chain());
        let mut whole = request(4, 1);
        assert!(whole.join(&one) && whole.is_chain());
    }

    /// Events are added in any order, and both halves of a request may contain the same event.
    #[test]
    fn the_second_event_is_known_in_any_order() {
        let at = |nth: i64| mention(10 * nth, EventPlace(nth.cast_unsigned()));
        let reach = |events: &[i64]| {
            let mut reach = RequestReach::NONE;
            events.iter().for_each(|nth| reach.see(&at(*nth)));
            reach
        };
        for events in [
            [1, 2, 3],
            [1, 3, 2],
            [2, 1, 3],
            [2, 3, 1],
            [3, 1, 2],
            [3, 2, 1],
        ] {
            assert_eq!(reach(&events), reach(&[1, 2, 3]));
            assert_eq!(reach(&events).second_ns, 20);
            for (left, right) in [
                (0..1, 1..3),
                (0..2, 2..3),
                (0..3, 1..2),
                (0..1, 0..3),
                (0..0, 0..3),
            ] {
                let mut both = reach(&events[left]);
                both.add(&reach(&events[right]));
                assert_eq!(both, reach(&events), "{events:?}");
            }
        }
        let shifted = reach(&[1, 2]).placed(&TimeMap::shift(5));
        assert_eq!(shifted.second_ns, 25);
        assert_eq!(
            reach(&[1, 1]).placed(&TimeMap::shift(5)).second_ns,
            i64::MAX
        );
    }

    #[test]
    fn what_is_put_aside_comes_back() {
        fn same<R: Record + Copy + std::fmt::Debug + PartialEq>(record: R) {
            let mut bytes = Vec::new();
            record.store(&mut bytes);
            assert_eq!((bytes.len(), R::load(&bytes)), (R::BYTES, record));
        }
        for has_our_start in [false, true] {
            same(ProgramFlow {
                key: 9,
                id: 1 << 63,
                style: Style(255),
                thread: 3,
                clock: u32::MAX,
                start_ns: -9,
                end_ns: i64::MAX,
                has_our_start,
                has_our_rest: !has_our_start,
            });
        }
        let mut dropped = DroppedRequest::new(u64::MAX, &RequestReach::NONE);
        same(dropped);
        dropped.is_chain = true;
        same(dropped);
    }

    #[test]
    fn phases_of_one_flow_become_one() {
        let phases = |key, has_start| FlowPhases {
            key,
            style: Style(1),
            has_start,
            has_other: !has_start,
        };
        let mut both = phases(4, false);
        assert!(both.join(&phases(4, true)) && !both.join(&phases(5, true)));
        assert!(both.has_start && both.has_other);
        let mut bytes = Vec::new();
        both.store(&mut bytes);
        assert_eq!(
            (bytes.len(), FlowPhases::load(&bytes)),
            (FlowPhases::BYTES, both)
        );
    }
}
