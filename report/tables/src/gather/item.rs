//! An event of a slice or flow while all of them are sorted.

use std::cmp::Ordering;
use trace_store::sorter::{Record, long_at, word_at};

/// What an event does. Perfetto takes the events of one time in this order: ends (`E`), then whole spans, the longest first, then all others as they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Act {
    /// The args of an end, at the time of its begin: they belong to that slice.
    EndArgs = 0,
    /// An end of a `B`. `dur_ns` is the duration of its span, [`NO_END`] if it has no begin.
    End,
    Span,
    Begin,
    Instant,
    /// An instant of its process, and one of the whole trace.
    ProcessInstant,
    GlobalInstant,
    AsyncBegin,
    AsyncInstant,
    AsyncEnd,
    /// An arrow leaves the slice that is open here, passes through it, ends in it, or ends in the next one.
    FlowOut,
    FlowStep,
    FlowIn,
    FlowInNext,
}

const ACTS: [Act; 14] = [
    Act::EndArgs,
    Act::End,
    Act::Span,
    Act::Begin,
    Act::Instant,
    Act::ProcessInstant,
    Act::GlobalInstant,
    Act::AsyncBegin,
    Act::AsyncInstant,
    Act::AsyncEnd,
    Act::FlowOut,
    Act::FlowStep,
    Act::FlowIn,
    Act::FlowInNext,
];

/// The duration of a slice without an end.
pub(crate) const NO_END: i64 = -1;
/// The row of what lies on no thread.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// An event, its text left in the log of entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) process: u32,
    pub(crate) act: Act,
    /// Whether it is an arrow that a whole span brings: it stands behind that span.
    pub(crate) is_bound: bool,
    /// The row of a thread by its number, [`NO_ROW`] if it is on none.
    pub(crate) row: u32,
    /// Its name and category by their number.
    pub(crate) name: u32,
    pub(crate) ts_ns: i64,
    /// Of an arrow that is bound, that of its span.
    pub(crate) dur_ns: i64,
    /// Where its entry is in the log; in the order of the events.
    pub(crate) at: u64,
}

impl Item {
    /// The place among the events of one time.
    pub(crate) fn rank(&self) -> i64 {
        match self.act {
            Act::EndArgs => i64::MIN,
            Act::End => i64::MIN + 1,
            Act::Span => i64::MAX - self.dur_ns.max(0),
            _ if self.is_bound => i64::MAX - self.dur_ns.max(0),
            _ => i64::MAX,
        }
    }
}

impl Ord for Item {
    #[inline]
    fn cmp(&self, other: &Item) -> Ordering {
        let by_time = (self.process, self.ts_ns).cmp(&(other.process, other.ts_ns));
        by_time.then_with(|| (self.rank(), self.at).cmp(&(other.rank(), other.at)))
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Item) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Item) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Item {}

impl Record for Item {
    const BYTES: usize = 38;

    fn store(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; Item::BYTES];
        let longs = [
            self.ts_ns.cast_unsigned(),
            self.dur_ns.cast_unsigned(),
            self.at,
        ];
        for (to, long) in bytes.chunks_exact_mut(8).zip(longs) {
            to.copy_from_slice(&long.to_le_bytes());
        }
        let words = [self.process, self.row, self.name];
        for (to, word) in bytes[24..].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        (bytes[36], bytes[37]) = (self.act as u8, u8::from(self.is_bound));
        out.extend_from_slice(&bytes);
    }

    fn load(bytes: &[u8]) -> Item {
        Item {
            ts_ns: long_at(bytes, 0).cast_signed(),
            dur_ns: long_at(bytes, 8).cast_signed(),
            at: long_at(bytes, 16),
            process: word_at(bytes, 24),
            row: word_at(bytes, 28),
            name: word_at(bytes, 32),
            act: ACTS[usize::from(bytes[36]) % ACTS.len()],
            is_bound: bytes[37] == 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_act_is_read_as_it_was_stored() {
        for (number, act) in ACTS.into_iter().enumerate() {
            assert_eq!(act as usize, number);
            let item = Item {
                process: 3,
                act,
                is_bound: number % 2 == 1,
                row: NO_ROW,
                name: 9,
                ts_ns: -7,
                dur_ns: NO_END,
                at: 1 << 40,
            };
            let mut bytes = Vec::new();
            item.store(&mut bytes);
            assert_eq!(bytes.len(), Item::BYTES);
            let found = Item::load(&bytes);
            assert_eq!(format!("{found:?}"), format!("{item:?}"));
        }
    }
}
