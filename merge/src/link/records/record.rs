//! How the records lie in temporary files, and which of them become one.

use super::{
    Alias, EventPlace, FlowPhases, FlowThread, Link, Mention, OwnFlow, ProgramFlow, Request,
    RequestAlias, RequestKey, RequestReach, Root,
};
use crate::link::program::styles::Style;
use crate::store::sorter::Record;

fn store<const N: usize>(numbers: [u64; N], out: &mut Vec<u8>) {
    numbers
        .iter()
        .for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

#[inline]
fn load<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let (numbers, _) = bytes.as_chunks::<8>();
    let numbers = numbers.first_chunk::<N>().copied().unwrap_or([[0; 8]; N]);
    numbers.map(u64::from_le_bytes)
}

/// Bits of a stored style.
const HAS_LEAD: u64 = 1 << 32;
const IS_ELSEWHERE: u64 = 1 << 33;

fn bit(is_set: bool, bit: u64) -> u64 {
    if is_set { bit } else { 0 }
}

impl Record for Request {
    const BYTES: usize = 72;

    fn store(&self, out: &mut Vec<u8>) {
        let clock = u64::from(self.clock);
        let RequestReach {
            first,
            second_ns,
            last,
        } = self.reach;
        let times = [first.ts_ns, first.end_ns, second_ns, last.0];
        store(
            [self.key, clock, first.place.0, first.thread, last.1.0],
            out,
        );
        store(times.map(i64::cast_unsigned), out);
    }

    fn load(bytes: &[u8]) -> Request {
        let [key, clock, place, thread, last, times @ ..]: [u64; 9] = load(bytes);
        let [ts_ns, end_ns, second_ns, last_ns] = times.map(u64::cast_signed);
        Request {
            key,
            clock: u32::try_from(clock).unwrap_or(u32::MAX),
            reach: RequestReach {
                first: Mention {
                    ts_ns,
                    place: EventPlace(place),
                    thread,
                    end_ns,
                },
                second_ns,
                last: (last_ns, EventPlace(last)),
            },
        }
    }

    /// Of one id and clock there is one.
    fn join(&mut self, next: &Request) -> bool {
        let same = (self.key, self.clock) == (next.key, next.clock);
        if same {
            self.add(next);
        }
        same
    }
}

impl Record for RequestKey {
    const BYTES: usize = 8;

    fn store(&self, out: &mut Vec<u8>) {
        store([self.0], out);
    }

    fn load(bytes: &[u8]) -> RequestKey {
        let [key] = load(bytes);
        RequestKey(key)
    }

    fn join(&mut self, next: &RequestKey) -> bool {
        self == next
    }
}

impl Record for Alias {
    const BYTES: usize = 24;

    fn store(&self, out: &mut Vec<u8>) {
        store([self.other, self.id, self.reason], out);
    }

    fn load(bytes: &[u8]) -> Alias {
        let [other, id, reason] = load(bytes);
        Alias { other, id, reason }
    }

    /// Of one pair there is one, with the best reason, which comes first.
    fn join(&mut self, next: &Alias) -> bool {
        (self.other, self.id) == (next.other, next.id)
    }
}

impl Record for Root {
    const BYTES: usize = 24;

    fn store(&self, out: &mut Vec<u8>) {
        store([self.id, self.reason, self.root], out);
    }

    fn load(bytes: &[u8]) -> Root {
        let [id, reason, root] = load(bytes);
        Root { id, reason, root }
    }

    /// Of one id there is one, with the best reason, which comes first.
    fn join(&mut self, next: &Root) -> bool {
        self.id == next.id
    }
}

impl Record for RequestAlias {
    const BYTES: usize = 16;

    fn store(&self, out: &mut Vec<u8>) {
        store([self.root, self.id], out);
    }

    fn load(bytes: &[u8]) -> RequestAlias {
        let [root, id] = load(bytes);
        RequestAlias { root, id }
    }

    fn join(&mut self, next: &RequestAlias) -> bool {
        self == next
    }
}

impl Record for Link {
    const BYTES: usize = 72;

    fn store(&self, out: &mut Vec<u8>) {
        let own = self.own.map_or([0; 5], |own| {
            let bits = bit(own.has_lead, HAS_LEAD) | bit(own.is_elsewhere, IS_ELSEWHERE);
            let [start_ns, end_ns] = [own.start_ns, own.end_ns].map(i64::cast_unsigned);
            let style = u64::from(own.style.0) | bits;
            [own.id, style, start_ns, end_ns, own.thread]
        });
        store([self.key, self.flow, self.first.0, self.last.0], out);
        store(own, out);
    }

    fn load(bytes: &[u8]) -> Link {
        let [key, flow, first, last, id, style, start_ns, end_ns, thread] = load(bytes);
        Link {
            key,
            flow,
            first: EventPlace(first),
            last: EventPlace(last),
            own: (id != 0).then(|| OwnFlow {
                id,
                style: style_of(style & u64::from(u32::MAX)),
                start_ns: start_ns.cast_signed(),
                end_ns: end_ns.cast_signed(),
                thread,
                has_lead: style & HAS_LEAD != 0,
                is_elsewhere: style & IS_ELSEWHERE != 0,
            }),
        }
    }
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

    /// Of one flow and thread there is one.
    fn join(&mut self, next: &ProgramFlow) -> bool {
        let is_same = self.is_same_flow(next) && self.thread == next.thread;
        if is_same {
            self.add(next);
        }
        is_same
    }
}

impl Record for FlowThread {
    const BYTES: usize = 8;

    fn store(&self, out: &mut Vec<u8>) {
        store([self.key], out);
    }

    #[inline]
    fn load(bytes: &[u8]) -> FlowThread {
        let [key] = load(bytes);
        FlowThread { key }
    }

    fn join(&mut self, next: &FlowThread) -> bool {
        self == next
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

fn style_of(number: u64) -> Style {
    Style(u32::try_from(number).unwrap_or(u32::MAX))
}
