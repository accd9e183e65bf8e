//! Up to where a recording must be read.

use super::known::{Known, Place};
use crate::anchors::{anchored, read_since};
use crate::recording::Recording;

/// Up to where a recording must be read for all that was recorded before a time. Slots are written one after the other, so that their lines do not say
/// it; what was recorded before an anchor was read stands before the block with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    /// The block with that anchor. Where positions are missing behind it, what says why may stand behind `end`.
    pub(super) sure: Place,
    /// The end of the block with the next one.
    pub(super) end: Place,
}

impl Exit {
    /// For what was recorded before `to_ns`, from segment `start` on; `None` if that is everything.
    pub(super) fn of(
        recording: &Recording,
        known: &Known,
        (start, to_ns): (usize, i64),
    ) -> Option<Exit> {
        recording.header()?;
        let mut sure: Option<Place> = None;
        for segment in start.max(known.segment_at(to_ns))..recording.fragments.len() {
            let bytes = recording.fragments[segment].content.bytes();
            let mut from = 0;
            if sure.is_none() {
                let Some(found) = read_since(bytes, to_ns) else {
                    continue;
                };
                (sure, from) = (Some((segment, found.block.start)), found.block.body.end);
            }
            if let Some(sure) = sure
                && let Some(next) = anchored(bytes, from..bytes.len()).next()
            {
                let end = (segment, next.block.body.end);
                return Some(Exit { sure, end });
            }
        }
        None
    }
}
