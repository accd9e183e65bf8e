//! Positions that nothing covers.

use super::StreamKey;
use sa_recorder::format::BlockHeader;
use std::collections::BTreeMap;
use std::ops::Range;

/// Positions that nothing covers, and the first block behind each: segment and offset of its body.
#[derive(Default)]
pub(super) struct Missing(BTreeMap<StreamKey, Vec<Hole>>);

type Hole = (Range<u64>, Option<(u64, usize, usize)>);

impl Missing {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, stream: StreamKey, holes: Vec<Range<u64>>) {
        if !holes.is_empty() {
            let holes = holes.into_iter().map(|range| (range, None));
            self.0.insert(stream, holes.collect());
        }
    }

    /// Notes a block at the last hole before it.
    pub(super) fn note(&mut self, header: &BlockHeader, (segment, at): (usize, usize)) {
        let holes = self.0.get_mut(&(header.slot, header.generation));
        let before = holes.and_then(|holes| {
            let number = holes.partition_point(|(range, _)| range.end <= header.from);
            holes.get_mut(number.checked_sub(1)?)
        });
        if let Some((_, after)) = before {
            let place = (header.from, segment, at);
            *after = Some(after.map_or(place, |after| after.min(place)));
        }
    }

    /// Each hole, and the first block behind it, be it behind a later one as well.
    pub(super) fn into_holes(self) -> impl Iterator<Item = (StreamKey, Hole)> {
        self.0.into_iter().flat_map(|(key, mut holes)| {
            let mut behind = None;
            for (_, after) in holes.iter_mut().rev() {
                *after = after.or(behind);
                behind = *after;
            }
            holes.into_iter().map(move |hole| (key, hole))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(generation: u32, from: u64) -> BlockHeader {
        BlockHeader {
            slot: 1,
            generation,
            from,
            len: 10,
            sum: 0,
        }
    }

    #[test]
    fn a_hole_is_placed_at_the_first_block_behind_it() {
        let mut missing = Missing::default();
        missing.add((1, 0), Vec::new());
        assert!(missing.is_empty());
        missing.add((1, 0), vec![0..4, 10..20, 30..40, 60..70]);
        missing.add((1, 1), vec![0..4, 8..9]);
        for (generation, from, place) in [
            (0, 50, (3, 500)),
            (0, 40, (2, 400)),
            (0, 4, (0, 40)),
            (0, 55, (1, 10)),
            (2, 4, (0, 0)),
        ] {
            missing.note(&block(generation, from), place);
        }
        let holes: Vec<_> = missing.into_holes().collect();
        let expected = [
            ((1, 0), (0..4, Some((4, 0, 40)))),
            ((1, 0), (10..20, Some((40, 2, 400)))), // no block before the next hole
            ((1, 0), (30..40, Some((40, 2, 400)))),
            ((1, 0), (60..70, None)),
            ((1, 1), (0..4, None)),
            ((1, 1), (8..9, None)),
        ];
        assert_eq!(holes, expected);
    }
}
