//! Positions that nothing covers.

use super::StreamKey;
use sa_format::BlockHeader;
use std::collections::BTreeMap;
use std::ops::Range;

/// Positions that nothing covers, with the blocks on both sides.
#[derive(Default)]
pub(super) struct Missing(BTreeMap<StreamKey, Vec<Hole>>);

/// A range of positions of one stream that nothing covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) range: Range<u64>,
    /// End of the last block before the range.
    pub(super) before: Option<Edge>,
    /// Begin of the body of the first block after the range.
    pub(super) after: Option<Edge>,
}

/// Begin or end of a block: its position in the stream, and its segment and offset.
pub(super) type Edge = (u64, (usize, usize));

impl Missing {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, stream: StreamKey, holes: Vec<Range<u64>>) {
        if !holes.is_empty() {
            let hole = |range| Hole {
                range,
                before: None,
                after: None,
            };
            self.0.insert(stream, holes.into_iter().map(hole).collect());
        }
    }

    /// Enters a block as neighbour of the last hole before it and of the first hole after it.
    pub(super) fn add_block(&mut self, header: &BlockHeader, segment: usize, body: &Range<usize>) {
        let Some(holes) = self.0.get_mut(&header.stream()) else {
            return;
        };
        let end = header.positions().end;
        let behind = holes.partition_point(|hole| hole.range.end <= header.from);
        if let Some(hole) = holes[..behind].last_mut() {
            let begin = (header.from, (segment, body.start));
            hole.after = Some(hole.after.map_or(begin, |after| after.min(begin)));
        }
        let next = holes.partition_point(|hole| hole.range.start < end);
        if let Some(hole) = holes.get_mut(next) {
            hole.before = hole.before.max(Some((end, (segment, body.end))));
        }
    }

    /// Returns each hole with the nearest blocks on both sides. Other holes may lie in between.
    pub(super) fn into_holes(self) -> impl Iterator<Item = (StreamKey, Hole)> {
        self.0.into_iter().flat_map(|(key, mut holes)| {
            let (mut before, mut after) = (None, None);
            for hole in &mut holes {
                hole.before = hole.before.max(before);
                before = hole.before;
            }
            for hole in holes.iter_mut().rev() {
                hole.after = hole.after.or(after);
                after = hole.after;
            }
            holes.into_iter().map(move |hole| (key, hole))
        })
    }
}
