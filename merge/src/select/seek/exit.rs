//! Up to where a recording must be read.

use super::known::{SegmentOffset, SegmentTimes};
use crate::fragment::anchors::{Anchored, anchored, first_anchored};
use crate::fragment::recording::Recording;

/// For which window a recording is read, in its own time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Until {
    pub(super) to_ns: i64,
    /// How far behind it spans are looked for at most, if that was said.
    pub(super) reach_ns: Option<i64>,
    /// The same, where the recorder does not say what was open.
    pub(super) blind_ns: i64,
}

/// Up to where a recording must be read for a window. Slots are written one after the other, so that their lines do not say it; what was recorded before
/// an anchor was read stands before the block with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    /// The block with that anchor. Where positions are missing behind it, what says why may stand behind `end`.
    pub(super) sure: SegmentOffset,
    /// The end of the block with the next one.
    pub(super) end: SegmentOffset,
    /// Whether nothing behind it can reach into the window.
    pub(super) exact: bool,
}

impl Exit {
    /// From segment `start` on; `None` if everything must be read.
    pub(super) fn of(
        recording: &Recording,
        known: &SegmentTimes,
        start: usize,
        until: Until,
    ) -> Option<Exit> {
        recording.header()?;
        let mut sure: Option<(SegmentOffset, bool)> = None;
        for segment in start.max(known.segment_at(until.to_ns))..recording.fragments.len() {
            let bytes = recording.fragments[segment].content.bytes();
            let mut from = 0;
            if sure.is_none() {
                let is_reached = |found: &Anchored| until.is_reached_by(found, known);
                let Some(found) = first_anchored(bytes, is_reached) else {
                    continue;
                };
                let place = (segment, found.block.start);
                sure = Some((place, until.is_exact(&found, known)));
                from = found.block.body.end;
            }
            if let Some((sure, exact)) = sure
                && let Some(next) = anchored(bytes, from..bytes.len()).next()
            {
                let end = (segment, next.block.body.end);
                return Some(Exit { sure, end, exact });
            }
        }
        None
    }
}

impl Until {
    /// Whether nothing that was recorded later can reach into the window.
    fn is_exact(&self, found: &Anchored, known: &SegmentTimes) -> bool {
        let least_ns = found.least_ns(known.late_ns());
        least_ns.is_some_and(|least_ns| least_ns > self.to_ns)
    }

    fn is_reached_by(&self, found: &Anchored, known: &SegmentTimes) -> bool {
        let blind_ns = found.anchor.open_ns.is_none().then_some(self.blind_ns);
        let reach_ns = self.reach_ns.or(blind_ns);
        let end_ns = reach_ns.map(|reach_ns| self.to_ns.saturating_add(reach_ns));
        self.is_exact(found, known) || end_ns.is_some_and(|end_ns| found.at_ns >= end_ns)
    }
}
