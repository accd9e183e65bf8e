//! What is known of the stream of a slot.

use crate::event::line::parse;
use crate::fragment::blocks::Positions;
use sa_format::BlockHeader;
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Default)]
pub(crate) struct Stream {
    pub(super) covered: Positions,
    /// Whole lines that incomplete blocks gave.
    saved: Positions,
    /// What incomplete blocks were to hold: told as bad blocks, so no gaps.
    pub(super) claimed: Vec<Range<u64>>,
    /// Positions that should be covered, from what complete blocks and the ring say.
    pub(super) expected: u64,
    /// First and last position of its blocks between two places where segments are left out, by the number of such places before them.
    pub(super) runs: BTreeMap<usize, Range<u64>>,
}

impl Stream {
    /// Returns a stream whose whole blocks contain these positions.
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

    /// Returns the positions that an incomplete block claims below position `bound`, and which of its bytes are lines that nothing else holds. `None` if
    /// whole blocks hold all the positions.
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
        let kept = self.save(bytes, body, &claimed, bound);
        Some((claimed, kept))
    }

    /// The lines of an incomplete block that nothing else holds, below position `bound`.
    fn save(
        &mut self,
        bytes: &[u8],
        body: &Range<usize>,
        claimed: &Range<u64>,
        bound: u64,
    ) -> Vec<Range<usize>> {
        let mut kept = Vec::new();
        let mut start = body.start;
        let position = |at: usize| claimed.start.saturating_add((at - body.start) as u64);
        while start < body.end && position(start) < bound {
            let end = memchr::memchr(b'\n', &bytes[start..body.end])
                .map_or(body.end, |at| start + at + 1);
            let positions = position(start).min(claimed.end)..position(end).min(claimed.end);
            // What stands behind the claimed bytes has no position of its own.
            if positions.is_empty() || !self.holds(&positions) {
                keep(&mut kept, start..end);
                if parse(bytes[start..end].trim_ascii()).is_ok() {
                    self.saved.add(positions);
                }
            }
            start = end;
        }
        kept
    }
}

/// Adds lines that nobody vouches for to those before, of which there may be very many.
fn keep(kept: &mut Vec<Range<usize>>, lines: Range<usize>) {
    match kept.last_mut() {
        Some(last) if last.end == lines.start => last.end = lines.end,
        _ => kept.push(lines),
    }
}
