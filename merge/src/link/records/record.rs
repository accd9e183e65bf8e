//! How the records lie in temporary files, and which of them become one.

use super::{Alias, EventPlace, Link, Request, RequestAlias, RequestKey, RequestReach, Root};
use crate::store::sorter::Record;

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

impl Record for Request {
    const BYTES: usize = 48;

    fn store(&self, out: &mut Vec<u8>) {
        let marked = u64::from(self.clock) << 1 | u64::from(self.linked);
        let RequestReach { first, last } = self.reach;
        let times = [first.0, last.0].map(i64::cast_unsigned);
        let row = [self.key, marked, times[0], first.1.0, times[1], last.1.0];
        store(row, out);
    }

    fn load(bytes: &[u8]) -> Request {
        let [key, marked, first_ts, first, last_ts, last] = load(bytes);
        Request {
            key,
            clock: u32::try_from(marked >> 1).unwrap_or(u32::MAX),
            linked: marked & 1 != 0,
            reach: RequestReach {
                first: (first_ts.cast_signed(), EventPlace(first)),
                last: (last_ts.cast_signed(), EventPlace(last)),
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
    const BYTES: usize = 32;

    fn store(&self, out: &mut Vec<u8>) {
        store([self.key, self.flow, self.first.0, self.last.0], out);
    }

    fn load(bytes: &[u8]) -> Link {
        let [key, flow, first, last] = load(bytes);
        Link {
            key,
            flow,
            first: EventPlace(first),
            last: EventPlace(last),
        }
    }
}
