//! A host since its last boot, and what a recording says of its clock.

use crate::align::Reading;
use sa_recorder::format::{Anchor, FragmentHeader};

pub(crate) type Boot = (String, String);

/// What the clocks need to know of a recording.
pub(crate) struct RecordedClock<'a> {
    pub(crate) header: &'a FragmentHeader,
    pub(crate) anchors: &'a [Anchor],
    /// Its first and its last event, in its own time.
    pub(crate) events_ns: Option<(i64, i64)>,
}

pub(crate) fn boot(header: &FragmentHeader) -> Boot {
    (header.host.clone(), header.boot_id.clone())
}

/// Wall time at the host's monotonic zero.
pub(crate) fn wall_clock(header: &FragmentHeader, anchor: &Anchor) -> i64 {
    Reading::of(anchor, header.monotonic_offset_ns).ahead_ns
}
