//! Which positions of a recorder's streams were taken.

use crate::fragment::blocks::Positions;
use sa_recorder::format::BlockHeader;
use std::collections::HashMap;
use std::ops::Range;

/// Most stretches of one stream that are told apart: what lies before the newest of them counts as taken.
const STRETCHES: usize = 64;

/// The streams of one recorder, of each slot the newest generation.
#[derive(Debug, Default)]
pub(super) struct Streams(HashMap<u32, Stream>);

#[derive(Debug, Default)]
struct Stream {
    generation: u32,
    taken: Positions,
    /// A block that did not match, and may be written again.
    broken: Option<Range<u64>>,
}

/// What a whole block has that is new.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fresh {
    /// The parts of its bytes.
    pub(super) parts: Vec<Range<usize>>,
    /// Whether it holds what was broken before.
    pub(super) mends: bool,
}

impl Streams {
    /// Takes a whole block.
    pub(super) fn take(&mut self, header: &BlockHeader) -> Fresh {
        let Some(stream) = self.of(header) else {
            return Fresh {
                parts: Vec::new(),
                mends: false,
            };
        };
        let positions = positions(header);
        let is_in = |broken: &mut Range<u64>| positions.contains(&broken.start);
        let mends = stream.broken.take_if(is_in).is_some();
        let fresh = stream.taken.add(positions);
        stream.taken.forget_oldest(STRETCHES);
        let byte = |at: u64| usize::try_from(at - header.from).unwrap_or(usize::MAX);
        Fresh {
            parts: fresh
                .iter()
                .map(|of| byte(of.start)..byte(of.end))
                .collect(),
            mends,
        }
    }

    /// Notes a block that is incomplete or does not match; whether that is damage so far: nothing else holds its positions.
    pub(super) fn note_broken(&mut self, header: &BlockHeader) -> bool {
        let Some(stream) = self.of(header) else {
            return false;
        };
        let positions = positions(header);
        let is_damage =
            stream.broken.is_none() && !stream.taken.missing(positions.clone()).is_empty();
        if is_damage {
            stream.broken = Some(positions);
        }
        is_damage
    }

    /// The stream of a block, which is a new one if its generation is newer. An older one is over.
    fn of(&mut self, header: &BlockHeader) -> Option<&mut Stream> {
        let stream = self.0.entry(header.slot).or_default();
        if header.generation > stream.generation {
            *stream = Stream {
                generation: header.generation,
                ..Stream::default()
            };
        }
        (header.generation == stream.generation).then_some(stream)
    }
}

fn positions(header: &BlockHeader) -> Range<u64> {
    header.from..header.from.saturating_add(header.len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(generation: u32, from: u64, len: u64) -> BlockHeader {
        BlockHeader {
            slot: 3,
            generation,
            from,
            len,
            sum: 0,
        }
    }

    /// Begin and end of what is new.
    fn parts(streams: &mut Streams, generation: u32, from: u64, len: u64) -> Vec<(usize, usize)> {
        let fresh = streams.take(&block(generation, from, len));
        let ends = fresh.parts.into_iter().map(|part| (part.start, part.end));
        ends.collect()
    }

    #[test]
    fn a_position_is_taken_once() {
        let mut streams = Streams::default();
        for (generation, from, len, expected) in [
            (0, 0, 10, vec![(0, 10)]),
            (0, 0, 10, vec![]),
            (0, 5, 10, vec![(5, 10)]),
            (0, 30, 5, vec![(0, 5)]),
            (0, 10, 22, vec![(5, 20)]),
            (1, 0, 4, vec![(0, 4)]),
            (0, 90, 4, vec![]),
        ] {
            let found = parts(&mut streams, generation, from, len);
            assert_eq!(found, expected, "{generation} {from} {len}");
        }
    }

    #[test]
    fn a_block_that_is_written_again_is_no_damage() {
        let mut streams = Streams::default();
        assert!(streams.note_broken(&block(0, 0, 10)));
        assert!(!streams.note_broken(&block(0, 0, 10)));
        assert!(streams.take(&block(0, 0, 12)).mends);
        assert!(!streams.note_broken(&block(0, 4, 4)));
        assert!(!streams.take(&block(0, 12, 12)).mends);
    }

    #[test]
    fn what_is_known_of_a_stream_is_bounded() {
        let mut streams = Streams::default();
        for gap in 0..1_000 {
            streams.take(&block(0, 20 * gap, 10));
        }
        let stream = streams.0.values().next().unwrap();
        assert_eq!(stream.taken.stretches(), STRETCHES);
        assert_eq!(parts(&mut streams, 0, 10, 10), []);
        let last = parts(&mut streams, 0, 20 * 998 + 10, 10);
        assert_eq!(last, [(0, 10)]);
    }
}
