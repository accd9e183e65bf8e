//! The disk space of a process: what its segments hold, counted while they are written, which of them go at the bound, and what went with them. Data only, no I/O.

use std::collections::VecDeque;

use crate::run::config::Keep;

/// So many segments the bound is divided into,
const SEGMENTS: u64 = 16;
/// none smaller than this, or a process at full speed would begin thousands a second,
pub(crate) const LEAST_SEGMENT_BYTES: u64 = 1 << 20;
/// and none larger: a window is read in whole segments, and what is removed goes all at once.
const MOST_SEGMENT_BYTES: u64 = 32 << 20;

/// Below a limit on the size of files a segment ends so much sooner if what came first is kept. There it says that it is full, and what is lost then.
const FAREWELL_BYTES: u64 = 128 << 10;

/// The contents of one segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// Bytes on disk.
    pub(crate) bytes: u64,
    /// Number of events, including those that its loss records report.
    pub(crate) events: u64,
    /// Position up to which it contains each slot, by slot; 0 for a slot that it does not contain.
    pub(crate) reached: Vec<u64>,
    /// When it was begun, and when it was full.
    pub(crate) began_ns: u64,
    pub(crate) ended_ns: u64,
}

impl Contents {
    /// Returns the contents of a segment that begins at this time.
    pub(crate) fn begun_at(began_ns: u64) -> Contents {
        Contents {
            began_ns,
            ..Contents::default()
        }
    }

    /// Records the position up to which it contains a slot, or reports it as lost.
    pub(crate) fn reach(&mut self, slot: u32, end: u64) {
        let slot = slot as usize;
        if self.reached.len() <= slot {
            self.reached.resize(slot + 1, 0);
        }
        self.reached[slot] = self.reached[slot].max(end);
    }

    /// Joins what was written later.
    pub(crate) fn append(&mut self, later: &Contents) {
        self.bytes += later.bytes;
        self.events += later.events;
        let reached = (0..).zip(&later.reached);
        reached.for_each(|(slot, end)| self.reach(slot, *end));
        if self.began_ns == 0 {
            self.began_ns = later.began_ns;
        }
        self.ended_ns = later.ended_ns;
    }
}

/// What went with the segments that are removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Removed {
    /// The first segment that is not removed; 0 while none is.
    pub(crate) first: u32,
    pub(crate) contents: Contents,
}

/// The segments of a fragment that are full, and what may be written yet.
#[derive(Debug)]
pub(crate) struct Bound {
    max_bytes: u64,
    keep: Keep,
    /// Oldest first, each with its number.
    closed: VecDeque<(u32, Contents)>,
    /// Everything that was removed so far.
    pub(crate) removed: Removed,
}

/// What a new segment needs: the oldest ones go, and the new one tells of them.
#[derive(Debug)]
pub(crate) struct Turn {
    /// How many of the closed segments go.
    count: usize,
    /// What is removed once they are gone.
    pub(crate) removed: Removed,
}

impl Bound {
    pub(crate) fn new(max_bytes: u64, keep: Keep) -> Bound {
        Bound {
            max_bytes,
            keep,
            closed: VecDeque::new(),
            removed: Removed::default(),
        }
    }

    /// Where a segment ends, in files of at most `limit` bytes; a limit too low for any segment is met as a full disk is.
    pub(crate) fn segment_bytes(&self, limit: u64) -> u64 {
        let bytes = (self.max_bytes / SEGMENTS).clamp(LEAST_SEGMENT_BYTES, MOST_SEGMENT_BYTES);
        if limit < LEAST_SEGMENT_BYTES {
            return bytes;
        }
        match self.keep {
            Keep::Last => bytes.min(limit),
            Keep::First => bytes.min(limit - FAREWELL_BYTES),
        }
    }

    /// Bytes of the closed segments.
    fn closed_bytes(&self) -> u64 {
        self.closed.iter().map(|(_, contents)| contents.bytes).sum()
    }

    /// Whether a segment that has grown beyond its end to `bytes` is more than the bound and one segment allow.
    pub(crate) fn is_exceeded(&self, bytes: u64, segment_bytes: u64) -> bool {
        self.closed_bytes() + bytes > self.max_bytes + segment_bytes
    }

    /// What happens when segment `number` is full, with `current` in it; `None` if nothing more may be written.
    pub(crate) fn turn(&self, number: u32, current: &Contents, segment_bytes: u64) -> Option<Turn> {
        let mut bytes = self.closed_bytes() + current.bytes;
        let is_over = |bytes: u64| bytes + segment_bytes > self.max_bytes;
        if self.keep == Keep::First && is_over(bytes) {
            return None;
        }
        let mut turn = Turn {
            count: 0,
            removed: self.removed.clone(),
        };
        let closed = self.closed.iter().map(|(number, closed)| (*number, closed));
        for (number, contents) in closed.chain([(number, current)]) {
            if !is_over(bytes) {
                break;
            }
            bytes -= contents.bytes;
            turn.count += 1;
            turn.removed.first = number + 1;
            turn.removed.contents.append(contents);
        }
        Some(turn)
    }

    /// Notes that a new segment tells of the turn; gives the numbers of the segments to remove.
    pub(crate) fn take(&mut self, turn: Turn, number: u32, current: Contents) -> Vec<u32> {
        self.closed.push_back((number, current));
        self.removed = turn.removed;
        let gone = self.closed.drain(..turn.count);
        gone.map(|(number, _)| number).collect()
    }

    /// Forgets the segments that somebody else has removed, by `is_there`; gives their events.
    pub(crate) fn forget(&mut self, is_there: impl Fn(u32) -> bool) -> u64 {
        let mut events = 0;
        self.closed.retain(|(number, contents)| {
            let stays = is_there(*number);
            events += if stays { 0 } else { contents.events };
            stays
        });
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn contents(at: u64) -> Contents {
        let mut contents = Contents {
            bytes: MIB,
            began_ns: at,
            ended_ns: at + 9,
            ..Contents::default()
        };
        contents.reach(2, 100 * at);
        contents.events = 11;
        contents
    }

    #[test]
    fn segments_are_a_sixteenth_between_their_bounds() {
        for (max_mib, limit, expected) in [
            (4, u64::MAX, MIB),
            (160, u64::MAX, 10 * MIB),
            (160, 3 * MIB, 3 * MIB),
            (160, MIB - 1, 10 * MIB),
            (1 << 20, u64::MAX, 32 * MIB),
        ] {
            let bound = Bound::new(max_mib * MIB, Keep::Last);
            assert_eq!(bound.segment_bytes(limit), expected, "{max_mib} {limit}");
        }
        let first = Bound::new(160 * MIB, Keep::First);
        let farewell = 3 * MIB - first.segment_bytes(3 * MIB);
        assert_eq!(farewell, FAREWELL_BYTES);
    }

    #[test]
    fn a_segment_larger_than_the_bound_goes_itself() {
        let mut bound = Bound::new(4 * MIB, Keep::Last);
        let current = Contents {
            bytes: 16 * MIB,
            ..contents(1)
        };
        let turn = bound.turn(0, &current, MIB).unwrap();
        assert_eq!(bound.take(turn, 0, current), [0]);
        assert_eq!((bound.removed.first, bound.closed_bytes()), (1, 0));
    }
}
