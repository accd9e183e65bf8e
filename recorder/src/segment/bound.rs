//! The disk space of a process: the contents of its segments, counted while they are written, and
//! which of them are removed when the limit is reached. Data only, no I/O.

use std::collections::VecDeque;

use crate::run::config::Keep;

/// Number of segments that the limit is divided into.
const SEGMENTS: u64 = 16;
/// Minimum size of a segment. With a smaller one, a process at full speed would start thousands of
/// segments per second.
pub(crate) const MIN_SEGMENT_BYTES: u64 = 1 << 20;
/// Maximum size of a segment. A time window is read in whole segments, and a segment is removed as
/// a whole.
const MAX_SEGMENT_BYTES: u64 = 32 << 20;

/// Space in bytes that a segment leaves free below a limit on file sizes if the first events are
/// kept. It is for the record that recording has stopped, and for the losses after it.
const STOP_RESERVE_BYTES: u64 = 128 << 10;

/// The contents of one segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// Size on disk in bytes.
    pub(crate) bytes: u64,
    /// Number of events, including the ones that the segment's loss records report.
    pub(crate) events: u64,
    /// Position up to which the segment contains each slot, by slot; 0 for a slot that it does not
    /// contain.
    pub(crate) slot_ends: Vec<u64>,
    /// Time when the segment was created, and when it was full.
    pub(crate) began_ns: u64,
    pub(crate) ended_ns: u64,
}

impl Contents {
    /// Returns the contents of an empty segment that was created at `began_ns`.
    pub(crate) fn begun_at(began_ns: u64) -> Contents {
        Contents {
            began_ns,
            ..Contents::default()
        }
    }

    /// Records that the segment contains the lines of a slot (the ring area of one thread) up to
    /// position `end`, or reports them as lost.
    pub(crate) fn extend_slot(&mut self, slot: u32, end: u64) {
        let slot = slot as usize;
        if self.slot_ends.len() <= slot {
            self.slot_ends.resize(slot + 1, 0);
        }
        self.slot_ends[slot] = self.slot_ends[slot].max(end);
    }

    /// Adds the contents of a later segment (its bytes, events and positions in slots) to this
    /// total.
    pub(crate) fn append(&mut self, later: &Contents) {
        self.bytes += later.bytes;
        self.events += later.events;
        let slot_ends = (0..).zip(&later.slot_ends);
        slot_ends.for_each(|(slot, end)| self.extend_slot(slot, *end));
        if self.began_ns == 0 {
            self.began_ns = later.began_ns;
        }
        self.ended_ns = later.ended_ns;
    }
}

/// The contents of all removed segments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Removed {
    /// First segment that is not removed; 0 as long as none is.
    pub(crate) first: u32,
    pub(crate) contents: Contents,
}

/// The full segments of a fragment, and the limit on further ones.
#[derive(Debug)]
pub(crate) struct Bound {
    max_bytes: u64,
    keep: Keep,
    /// Closed segments with their numbers, oldest first.
    closed: VecDeque<(u32, Contents)>,
    /// Everything that was removed so far.
    pub(crate) removed: Removed,
}

/// The plan for a new segment: the oldest segments are removed, and the new one reports that.
#[derive(Debug)]
pub(crate) struct RollPlan {
    /// Number of closed segments to remove.
    count: usize,
    /// Everything that is removed after that.
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

    /// Returns the size in bytes at which a segment is full, if no file may be larger than `limit`
    /// bytes. A limit that is too low for any segment is handled like a full disk.
    pub(crate) fn segment_bytes(&self, limit: u64) -> u64 {
        let bytes = (self.max_bytes / SEGMENTS).clamp(MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES);
        if limit < MIN_SEGMENT_BYTES {
            return bytes;
        }
        match self.keep {
            Keep::Last => bytes.min(limit),
            Keep::First => bytes.min(limit - STOP_RESERVE_BYTES),
        }
    }

    /// Returns the total size in bytes of the full segments that were not removed.
    fn closed_bytes(&self) -> u64 {
        self.closed.iter().map(|(_, contents)| contents.bytes).sum()
    }

    /// Returns true if the process uses too much disk space: the full segments and a current one of
    /// `bytes` bytes exceed the limit by more than one segment.
    pub(crate) fn is_exceeded(&self, bytes: u64, segment_bytes: u64) -> bool {
        self.closed_bytes() + bytes > self.max_bytes + segment_bytes
    }

    /// Plans which segments to remove before a new one begins, because segment `number` is full.
    /// `current` describes the full segment, and `segment_bytes` is the size that the new one may
    /// reach. Returns `None` if the first events are to be kept and the disk space is used up: then
    /// nothing more may be written.
    pub(crate) fn plan_roll(
        &self,
        number: u32,
        current: &Contents,
        segment_bytes: u64,
    ) -> Option<RollPlan> {
        let mut bytes = self.closed_bytes() + current.bytes;
        let is_over = |bytes: u64| bytes + segment_bytes > self.max_bytes;
        if self.keep == Keep::First && is_over(bytes) {
            return None;
        }
        let mut plan = RollPlan {
            count: 0,
            removed: self.removed.clone(),
        };
        let closed = self.closed.iter().map(|(number, closed)| (*number, closed));
        for (number, contents) in closed.chain([(number, current)]) {
            if !is_over(bytes) {
                break;
            }
            bytes -= contents.bytes;
            plan.count += 1;
            plan.removed.first = number + 1;
            plan.removed.contents.append(contents);
        }
        Some(plan)
    }

    /// Counts segment `number` as full, and the segments in `plan` as removed, after a new segment
    /// has reported them as lost. Returns the numbers of the segments whose files the caller must
    /// delete.
    pub(crate) fn apply(&mut self, plan: RollPlan, number: u32, current: Contents) -> Vec<u32> {
        self.closed.push_back((number, current));
        self.removed = plan.removed;
        let gone = self.closed.drain(..plan.count);
        gone.map(|(number, _)| number).collect()
    }

    /// Forgets the full segments that somebody else has deleted, and returns the number of events
    /// that were in them. `is_there` returns true if the file of a segment still exists.
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
        contents.extend_slot(2, 100 * at);
        contents.events = 11;
        contents
    }

    #[test]
    fn segments_are_a_sixteenth_of_the_limit_within_bounds() {
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
        let reserve = 3 * MIB - first.segment_bytes(3 * MIB);
        assert_eq!(reserve, STOP_RESERVE_BYTES);
    }

    #[test]
    fn a_segment_larger_than_the_limit_is_removed_itself() {
        let mut bound = Bound::new(4 * MIB, Keep::Last);
        let current = Contents {
            bytes: 16 * MIB,
            ..contents(1)
        };
        let plan = bound.plan_roll(0, &current, MIB).unwrap();
        assert_eq!(bound.apply(plan, 0, current), [0]);
        assert_eq!((bound.removed.first, bound.closed_bytes()), (1, 0));
    }
}
