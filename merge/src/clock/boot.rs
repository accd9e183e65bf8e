//! A host since its last boot, and what a recording says of its clock.

use crate::align::Reading;
use sa_format::{Anchor, FragmentHeader};

/// Host name and boot id.
pub(crate) type Boot = (String, String);

/// What the clocks need to know of a recording.
pub(crate) struct RecordedClock<'a> {
    pub(crate) header: &'a FragmentHeader,
    pub(crate) anchors: &'a [Anchor],
    /// Its first and its last event, in its own time.
    pub(crate) events_ns: Option<(i64, i64)>,
}

/// Returns the boot in which a fragment was recorded.
pub(crate) fn boot(header: &FragmentHeader) -> Boot {
    (header.host.clone(), header.boot_id.clone())
}

/// Returns the wall time at the host's monotonic zero.
pub(crate) fn wall_clock(header: &FragmentHeader, anchor: &Anchor) -> i64 {
    Reading::of(anchor, header.monotonic_offset_ns).ahead_ns
}
