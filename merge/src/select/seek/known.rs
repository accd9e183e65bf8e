//! What the anchors of a recording say of its segments, without reading more of them.

use crate::fragment::anchors::{Anchored, first_anchor, last};
use crate::fragment::file::Fragment;
use crate::fragment::recording::Recording;
use crate::fragment::walk::{Block, BlockWalk};
use sa_recorder::format::Anchor;
use std::collections::{HashMap, VecDeque};

/// Blocks that a slot may write while its process ends.
const LAST_BLOCKS: usize = 2;
/// How far back the end of a segment is looked for at first.
const BACK_BYTES: usize = 1 << 20;

/// A segment, and an offset in it.
pub(super) type SegmentOffset = (usize, usize);

/// When the segments of a recording were written.
pub(super) struct SegmentTimes {
    /// When each segment was begun.
    pub(super) begins: Vec<Option<Anchor>>,
    /// Where the end of the recording begins that is read in any case.
    pub(super) tail: SegmentOffset,
    /// The newest anchor in a block, and its segment.
    newest: Option<(usize, Anchored)>,
}

impl SegmentTimes {
    pub(super) fn of(recording: &Recording) -> SegmentTimes {
        let begin = |fragment: &Fragment| {
            fragment.header.as_ref()?;
            first_anchor(fragment.content.bytes())
        };
        let mut begins: Vec<Option<Anchor>> = recording.fragments.iter().map(begin).collect();
        drop_disordered(&mut begins);
        let segments = recording.fragments.iter().enumerate().rev();
        let mut own = segments.filter(|(_, fragment)| fragment.header.is_some());
        let newest = own.find_map(|(segment, fragment)| {
            let bytes = fragment.content.bytes();
            Some((segment, last(bytes, bytes.len(), |_| true)?))
        });
        // What is told only afterwards is known of by the next anchor, so that behind the newest one anything may stand.
        let says = newest
            .as_ref()
            .filter(|(_, newest)| newest.anchor.late_ns.is_some());
        let said = says.map(|(segment, newest)| (*segment, newest.block.start));
        let tail = SegmentTimes::find_tail(recording);
        SegmentTimes {
            begins,
            tail: said.map_or(tail, |said| said.min(tail)),
            newest,
        }
    }

    /// How long after its begin anything was told at most, as far as the recorder says.
    pub(super) fn late_ns(&self) -> i64 {
        let newest = self.newest.as_ref();
        let late_ns = newest.and_then(|(_, newest)| newest.anchor.late_ns);
        late_ns.map_or(0, |late_ns| i64::try_from(late_ns).unwrap_or(i64::MAX))
    }

    /// The anchors that are known.
    pub(super) fn anchors(&self) -> impl Iterator<Item = &Anchor> {
        let newest = self.newest.iter().map(|(_, newest)| &newest.anchor.anchor);
        self.begins.iter().flatten().chain(newest)
    }

    /// When the newest anchor was read, in the recording's own time.
    pub(super) fn newest_ns(&self) -> Option<i64> {
        self.anchors().filter_map(monotonic_ns).max()
    }

    /// When a segment was begun, in the recording's own time.
    pub(super) fn begin_ns(&self, segment: usize) -> Option<i64> {
        monotonic_ns(self.begins.get(segment)?.as_ref()?)
    }

    /// The segment from which on to read for all that was written at `from_ns` or later: a segment ends when the next one begins.
    pub(super) fn segment_at(&self, from_ns: i64) -> usize {
        let is_before = |segment: &usize| self.begin_ns(*segment).is_some_and(|at| at < from_ns);
        (0..self.begins.len()).rev().find(is_before).unwrap_or(0)
    }

    /// Whether the end of the recording that is read in any case begins before a place.
    pub(super) fn is_tail(&self, place: SegmentOffset) -> bool {
        place >= self.tail
    }

    fn find_tail(recording: &Recording) -> SegmentOffset {
        match (&recording.ring, recording.was_dead) {
            (None, _) => tail_of_ended(recording),
            (Some(_), true) => tail_of_dead(recording),
            (Some(_), false) => tail_of_live(recording),
        }
    }
}

/// No checksum vouches for the first lines of a segment: an anchor that is later than one of a later segment, and that one, say nothing.
fn drop_disordered(begins: &mut [Option<Anchor>]) {
    let times: Vec<Option<i64>> = begins
        .iter()
        .map(|begin| begin.as_ref().and_then(monotonic_ns))
        .collect();
    let mut latest = None;
    for (begin, at_ns) in begins.iter_mut().zip(&times) {
        *begin = begin.filter(|_| *at_ns >= latest);
        latest = latest.max(*at_ns);
    }
    let mut least = i64::MAX;
    for (begin, at_ns) in begins.iter_mut().zip(&times).rev() {
        *begin = begin.filter(|_| at_ns.is_some_and(|at_ns| at_ns <= least));
        least = least.min(at_ns.unwrap_or(least));
    }
}

fn monotonic_ns(anchor: &Anchor) -> Option<i64> {
    i64::try_from(anchor.monotonic_ns).ok()
}

/// A process that ends writes everything, tells what is unfinished in a block or two of each slot, and its end after that. So nothing of this stands
/// before more blocks of one slot.
fn tail_of_ended(recording: &Recording) -> SegmentOffset {
    let mut counts = HashMap::new();
    for (segment, fragment) in recording.fragments.iter().enumerate().rev() {
        let bytes = fragment.content.bytes();
        if let Some(end) = find_back(bytes, |blocks| one_too_many(blocks, &counts)) {
            return (segment, end);
        }
        for block in BlockWalk::from(bytes, 0) {
            *counts.entry(block.header.slot).or_default() += 1;
        }
    }
    (0, 0)
}

/// The end of the last block behind which its slot has as many as it may write at the end; `counts` says how many there are in later segments.
fn one_too_many(
    blocks: impl Iterator<Item = Block>,
    counts: &HashMap<u32, usize>,
) -> Option<usize> {
    let mut ends: HashMap<u32, VecDeque<usize>> = HashMap::new();
    for block in blocks.filter(|block| block.header.slot != 0) {
        let of_slot = ends.entry(block.header.slot).or_default();
        of_slot.push_back(block.body.end);
        if of_slot.len() > LAST_BLOCKS + 1 {
            of_slot.pop_front();
        }
    }
    let of_slot = |(slot, ends): (&u32, &VecDeque<usize>)| {
        let later = counts.get(slot).copied().unwrap_or(0).min(LAST_BLOCKS);
        let at = ends.len().checked_sub(LAST_BLOCKS + 1 - later)?;
        ends.get(at).copied()
    };
    ends.iter().filter_map(of_slot).max()
}

/// What `find` gives of the last blocks of a segment, of so many as it takes to find anything.
fn find_back(bytes: &[u8], find: impl Fn(BlockWalk<'_>) -> Option<usize>) -> Option<usize> {
    let mut back = BACK_BYTES;
    loop {
        let at = bytes.len().saturating_sub(back);
        let found = find(BlockWalk::from(bytes, at));
        if found.is_some() || at == 0 {
            return found;
        }
        back = back.saturating_mul(4);
    }
}

/// Whether a block was in the fragment when the ring was copied. What was written later tells what has ended since.
fn is_in_copy(recording: &Recording, block: &Block) -> bool {
    let end = block.header.from.saturating_add(block.header.len);
    let mut slots = recording.ring.iter().flat_map(|(ring, _)| &ring.slots);
    slots.any(|slot| slot.slot == block.header.slot && end <= slot.from)
}

/// Slot 0 is copied first: what stands before a block of it that is in the copy was written before any other was copied.
fn tail_of_live(recording: &Recording) -> SegmentOffset {
    let found = |(segment, fragment): (usize, &Fragment)| {
        let bytes = fragment.content.bytes();
        let anchored = last(bytes, bytes.len(), |block| is_in_copy(recording, block));
        anchored.map(|anchored| (segment, anchored.block.start))
    };
    let mut segments = recording.fragments.iter().enumerate().rev();
    segments.find_map(found).unwrap_or((0, 0))
}

/// A process that was dead wrote nothing after the copy: only its last block may not be in it, and what somebody settled meanwhile.
fn tail_of_dead(recording: &Recording) -> SegmentOffset {
    let newest = recording.fragments.len().saturating_sub(1);
    let bytes = recording.fragments[newest].content.bytes();
    let copied = find_back(bytes, |blocks| {
        let copied = blocks.filter(|block| is_in_copy(recording, block));
        copied.last().map(|block| block.body.end)
    });
    (newest, copied.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_that_contradict_each_other_say_nothing() {
        let read = |at: &[i64]| {
            let anchor = |at: &i64| {
                Some(Anchor {
                    monotonic_ns: u64::try_from(*at).ok()?,
                    realtime_ns: 1,
                    uncertainty_ns: 1,
                })
            };
            let mut begins: Vec<Option<Anchor>> = at.iter().map(anchor).collect();
            drop_disordered(&mut begins);
            let kept = begins
                .iter()
                .map(|begin| begin.as_ref().and_then(monotonic_ns).unwrap_or(-1));
            kept.collect::<Vec<_>>()
        };
        assert_eq!(read(&[1, 2, 2, 3]), [1, 2, 2, 3]);
        assert_eq!(read(&[1, -1, 3]), [1, -1, 3]);
        assert_eq!(read(&[1, 9, 3, 4, 10]), [1, -1, -1, -1, 10]);
        assert_eq!(read(&[5, 6, 1, 7]), [-1, -1, -1, 7]);
    }
}
