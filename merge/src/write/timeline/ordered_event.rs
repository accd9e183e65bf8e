//! An event of a sorted trace, as a record of fixed size: there may be more of them than memory shall hold.

use crate::pass::chunk::EventRef;
use crate::store::sorter::{Record, long_at, word_at};

/// The bit of a target's number that says that the event began before the window.
const CUT: u32 = 1 << 31;
/// The bit that says that the event is a begin that is written as a complete span.
const WHOLE: u32 = 1 << 30;

/// An event of the trace. Those of one time keep the order in which an unsorted trace has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderedEvent {
    /// When, in the trace; metadata comes first.
    pub(super) ts_ns: i64,
    /// Which chunk it is in, and which of its events it is.
    pub(super) at: EventRef,
    /// Where its line begins in the chunk's source.
    pub(super) start: u64,
    pub(super) len: u32,
    /// Which of the targets, whether it is cut, and whether it is written as a complete span.
    target: u32,
}

impl OrderedEvent {
    pub(super) fn new(
        ts_ns: i64,
        at: EventRef,
        (start, len): (usize, usize),
        target: u32,
    ) -> OrderedEvent {
        OrderedEvent {
            ts_ns,
            at,
            start: start as u64,
            len: u32::try_from(len).unwrap_or(0),
            target,
        }
    }

    /// Marks the event as one that crosses an edge of the window, or as a begin that is written as a complete span.
    pub(super) fn marked(mut self, is_cut: bool, is_whole: bool) -> OrderedEvent {
        self.target |= (u32::from(is_cut) * CUT) | (u32::from(is_whole) * WHOLE);
        self
    }

    pub(super) fn is_whole(&self) -> bool {
        self.target & WHOLE != 0
    }

    pub(super) fn is_cut(&self) -> bool {
        self.target & CUT != 0
    }

    /// Which of the targets.
    pub(super) fn target(&self) -> u32 {
        self.target & !(CUT | WHOLE)
    }
}

impl Record for OrderedEvent {
    const BYTES: usize = 32;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.ts_ns.to_le_bytes());
        out.extend_from_slice(&self.start.to_le_bytes());
        self.at.store(out);
        out.extend_from_slice(&self.len.to_le_bytes());
        out.extend_from_slice(&self.target.to_le_bytes());
    }

    fn load(bytes: &[u8]) -> Self {
        OrderedEvent {
            ts_ns: long_at(bytes, 0).cast_signed(),
            start: long_at(bytes, 8),
            at: EventRef::load(bytes, 16),
            len: word_at(bytes, 24),
            target: word_at(bytes, 28),
        }
    }
}
