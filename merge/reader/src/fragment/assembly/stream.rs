//! Positions of one slot's stream that a recording contains.

use crate::event::line::parse;
use crate::fragment::blocks::Positions;
use sa_format::BlockHeader;
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Default)]
pub(crate) struct Stream {
    pub(super) covered: Positions,
    /// Positions of whole lines that were found in incomplete blocks.
    saved: Positions,
    /// Positions that incomplete blocks claim. They are reported as bad blocks and not as gaps.
    pub(super) claimed: Vec<Range<u64>>,
    /// End of the positions that complete blocks and the ring show to exist.
    pub(super) expected: u64,
    /// First and last position of its blocks between two places where segments are left out. The key is the number of such places before them.
    pub(super) runs: BTreeMap<usize, Range<u64>>,
}

impl Stream {
    /// Creates a stream whose complete blocks contain these positions.
    pub(crate) fn covered(covered: Positions) -> Stream {
        Stream {
            covered,
            ..Stream::default()
        }
    }

    fn holds(&self, positions: &Range<u64>) -> bool {
        let missing = |set: &Positions| set.missing(positions.clone());
        missing(&self.covered).is_empty() || missing(&self.saved).is_empty()
    }

    /// Returns the positions below `bound` that an incomplete block claims, and the ranges of those of its lines that nothing else contains. `None`
    /// if complete blocks contain all the positions.
    pub(crate) fn broken(
        &mut self,
        bytes: &[u8],
        body: &Range<usize>,
        header: &BlockHeader,
        bound: u64,
    ) -> Option<(Range<u64>, Vec<Range<usize>>)> {
        let end = header.from.saturating_add(header.len.min(1 << 32));
        let claimed = header.from..end.min(bound).max(header.from);
        if self.covered.missing(claimed.clone()).is_empty() {
            return None;
        }
        let ranges = self.save(bytes, body, &claimed, bound);
        Some((claimed, ranges))
    }

    /// Returns the ranges of the lines of an incomplete block that nothing else contains, below position `bound`.
    fn save(
        &mut self,
        bytes: &[u8],
        body: &Range<usize>,
        claimed: &Range<u64>,
        bound: u64,
    ) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        let mut start = body.start;
        let position = |at: usize| claimed.start.saturating_add((at - body.start) as u64);
        while start < body.end && position(start) < bound {
            let end = memchr::memchr(b'\n', &bytes[start..body.end])
                .map_or(body.end, |at| start + at + 1);
            let positions = position(start).min(claimed.end)..position(end).min(claimed.end);
            // Lines after the claimed bytes have no positions of their own.
            if positions.is_empty() || !self.holds(&positions) {
                add_range(&mut ranges, start..end);
                if parse(bytes[start..end].trim_ascii()).is_ok() {
                    self.saved.add(positions);
                }
            }
            start = end;
        }
        ranges
    }
}

/// Adds an unverified range of lines. Adjacent ranges are joined, because there may be very many.
fn add_range(ranges: &mut Vec<Range<usize>>, lines: Range<usize>) {
    match ranges.last_mut() {
        Some(last) if last.end == lines.start => last.end = lines.end,
        _ => ranges.push(lines),
    }
}
