//! Records which positions of a recorder's streams were read.

use super::broken_blocks::BrokenBlock;
use crate::fragment::assembly::StreamKey;
use crate::fragment::assembly::stream::Stream;
use crate::fragment::blocks::Positions;
use sa_format::BlockHeader;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

/// Maximum number of separate ranges of one stream. Everything before the newest of them counts as read.
const MOST_RANGES: usize = 64;
/// Maximum number of damaged blocks that may still be written again, and of other streams that are kept.
const MOST: usize = 1_024;

/// The streams of one recorder. For each slot, this is the newest generation.
#[derive(Debug, Default)]
pub(super) struct Streams {
    newest: HashMap<u32, SlotStream>,
    /// By slot and generation: older streams that lack positions, which a loss may still explain, and losses of newer streams before their first
    /// block.
    others: BTreeMap<(u32, u32), AccountedPositions>,
    /// Blocks that did not match their checksum and may be written again.
    broken: VecDeque<BlockHeader>,
    /// Number of missing bytes in streams that are not kept any more.
    forgotten: u64,
}

#[derive(Debug, Default)]
struct SlotStream {
    generation: u32,
    read: Positions,
    accounted: AccountedPositions,
}

/// Positions of a stream that were read or that a record reports as lost.
#[derive(Debug, Default)]
struct AccountedPositions {
    positions: Positions,
    end: u64,
    /// Number of missing bytes below the ranges that are kept.
    forgotten: u64,
}

/// New data in a whole block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fresh {
    /// Ranges of its bytes that are new.
    pub(super) parts: Vec<Range<usize>>,
    /// Number of broken blocks that it replaces.
    pub(super) replaced_blocks: u64,
}

impl AccountedPositions {
    /// Adds a range of positions (byte offsets in the stream) that were read or reported as lost. Joins the oldest ranges if there are too many.
    fn add(&mut self, range: Range<u64>) {
        self.end = self.end.max(range.end);
        self.positions.add(range);
        if self.positions.range_count() > MOST_RANGES {
            let before = self.missing_between();
            self.positions.fill_oldest(MOST_RANGES);
            self.forgotten += before - self.missing_between();
        }
    }

    /// Returns the number of bytes between the kept ranges, which were neither read nor reported as lost.
    fn missing_between(&self) -> u64 {
        let missing = self.positions.missing(0..self.end);
        missing.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns the number of bytes of the stream, before its newest ones, that were neither read nor reported as lost.
    fn missing(&self) -> u64 {
        self.forgotten + self.missing_between()
    }
}

impl Streams {
    /// Adds the header of a whole block and returns which of the block's bytes were not read before. Only whole blocks begin a new generation,
    /// because the header of a broken one may contain anything.
    pub(super) fn add_block(&mut self, header: &BlockHeader) -> Fresh {
        let positions = header.positions();
        let before = self.broken.len();
        self.broken.retain(|broken| {
            broken.stream() != header.stream() || !positions.contains(&broken.from)
        });
        let replaced_blocks = (before - self.broken.len()) as u64;
        let stream = self.newest.entry(header.slot).or_default();
        if header.generation > stream.generation {
            let lost = self.others.remove(&(header.slot, header.generation));
            let new = SlotStream {
                generation: header.generation,
                accounted: lost.unwrap_or_default(),
                ..SlotStream::default()
            };
            let old = std::mem::replace(stream, new);
            if old.accounted.missing() > 0 {
                self.others
                    .insert((header.slot, old.generation), old.accounted);
            }
            // These are losses of generations that never had a block.
            self.others.retain(|(slot, generation), accounted| {
                *slot != header.slot || *generation > header.generation || accounted.missing() > 0
            });
        }
        if self.others.len() > MOST {
            let first = self.others.pop_first();
            self.forgotten += first.map_or(0, |(_, accounted)| accounted.missing());
        }
        let mut fresh = Vec::new();
        if header.generation == stream.generation {
            fresh = stream.read.add(positions.clone());
            stream.read.fill_oldest(MOST_RANGES);
            stream.accounted.add(positions);
        }
        let byte = |at: u64| usize::try_from(at - header.from).unwrap_or(usize::MAX);
        let parts = fresh.iter();
        Fresh {
            parts: parts
                .map(|range| byte(range.start)..byte(range.end))
                .collect(),
            replaced_blocks,
        }
    }

    /// Returns true if nothing in a block with this header is new: whole blocks that were read contain all of its positions (byte offsets in the
    /// stream).
    pub(super) fn contains(&self, header: &BlockHeader) -> bool {
        self.newest.get(&header.slot).is_some_and(|stream| {
            stream.generation == header.generation
                && header.len > 0
                && stream.read.missing(header.positions()).is_empty()
        })
    }

    /// Returns the byte ranges of the lines to read from each broken block. Lines that whole blocks or earlier broken blocks contain are left
    /// out.
    pub(super) fn lines_of_broken(&self, blocks: &[BrokenBlock]) -> Vec<Vec<Range<usize>>> {
        let mut streams: HashMap<StreamKey, Stream> = HashMap::new();
        let lines = |BrokenBlock { header, bytes, .. }: &BrokenBlock| {
            let stream = streams.entry(header.stream());
            let stream =
                stream.or_insert_with(|| Stream::covered(self.read_positions(header.stream())));
            let counting = stream.broken(bytes, &(0..bytes.len()), header, u64::MAX);
            counting.map_or_else(Vec::new, |(_, lines)| lines)
        };
        blocks.iter().map(lines).collect()
    }

    /// Returns the positions (byte offsets) of a stream that were read; empty unless the stream is the newest generation of its slot, the ring
    /// area of one thread.
    fn read_positions(&self, (slot, generation): StreamKey) -> Positions {
        let newest = self.newest.get(&slot);
        let stream = newest.filter(|newest| newest.generation == generation);
        stream.map_or_else(Positions::default, |stream| stream.read.clone())
    }

    /// Remembers the header of a broken block (incomplete, or with a wrong checksum) that no whole block has replaced so far. Returns false if it
    /// was already remembered.
    pub(super) fn add_broken(&mut self, header: &BlockHeader) -> bool {
        let is_known =
            |broken: &BlockHeader| (broken.stream(), broken.from) == (header.stream(), header.from);
        if self.broken.iter().any(is_known) {
            return false;
        }
        self.broken.push_back(*header);
        if self.broken.len() > MOST {
            self.broken.pop_front();
        }
        true
    }

    /// Records that a loss record explains why the range `lost` of a stream is missing. The stream is given by its slot (the ring area of one
    /// thread) and the generation of that slot; the range consists of byte offsets in it.
    pub(super) fn explain(&mut self, slot: u32, generation: u32, lost: Range<u64>) {
        if lost.is_empty() {
            return;
        }
        let Some(stream) = self.newest.get_mut(&slot) else {
            // No block of this slot was read yet. Its missing beginning is explained.
            let mut stream = SlotStream {
                generation,
                ..SlotStream::default()
            };
            stream.accounted.add(lost);
            self.newest.insert(slot, stream);
            return;
        };
        let key = (slot, generation);
        if generation == stream.generation {
            stream.accounted.add(lost);
        } else if generation > stream.generation && self.others.len() < MOST {
            self.others.entry(key).or_default().add(lost);
        } else if let Some(accounted) = self.others.get_mut(&key) {
            accounted.add(lost);
        }
    }

    /// Returns the total number of bytes in all streams that were not read although later ones were, and that no loss record explains.
    pub(super) fn missing(&self) -> u64 {
        let newest = self
            .newest
            .values()
            .map(|stream| stream.accounted.missing());
        let others = self.others.values().map(AccountedPositions::missing);
        self.forgotten + newest.sum::<u64>() + others.sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_stream_is_bounded() {
        let mut streams = Streams::default();
        let add = |streams: &mut Streams, from: u64| {
            let header = BlockHeader {
                slot: 3,
                generation: 0,
                from,
                len: 10,
                sum: 0,
            };
            let fresh = streams.add_block(&header).parts.into_iter();
            let ends = fresh.map(|part| (part.start, part.end));
            ends.collect::<Vec<_>>()
        };
        for gap in 0..1_000 {
            add(&mut streams, 20 * gap);
        }
        let stream = streams.newest.values().next().unwrap();
        assert_eq!(stream.read.range_count(), MOST_RANGES);
        assert_eq!(streams.missing(), 999 * 10);
        assert_eq!(add(&mut streams, 10), []);
        assert_eq!(add(&mut streams, 20 * 998 + 10), [(0, 10)]);
    }
}
