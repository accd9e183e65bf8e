//! The first lines of a segment, which make it readable even if all older ones are gone.

use crate::ring::loss::process_line;
use crate::ring::slot::GENERATION;
use crate::segment::bound::Removed;
use crate::sys::clock;
use crate::text::record::metadata_line;
use sa_format::loss::{Cause, LossRecord};
use sa_format::{Anchor, FragmentHeader, RemovedStreams};

/// The beginning of a segment, and the earliest start of the lines in this segment and later ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentBegin {
    /// Anchor, read before the other times.
    pub(crate) anchor: Anchor,
    /// [`FragmentHeader::open_ns`].
    pub(crate) open_ns: Option<u64>,
    /// [`FragmentHeader::late_ns`].
    pub(crate) late_ns: Option<u64>,
}

impl SegmentBegin {
    /// Returns the times for the header of a new segment: an anchor read now, and no information
    /// about earlier lines.
    pub(crate) fn now() -> SegmentBegin {
        SegmentBegin {
            anchor: clock::anchor(),
            open_ns: None,
            late_ns: None,
        }
    }
}

/// Builds the first lines of segment `number`: header, anchor, current names, and the events that
/// were lost with removed segments. The last line declares these segments removed, and only then
/// are they deleted. If a kill comes at any time, a segment is therefore either counted or reported
/// as lost.
pub(crate) fn preamble(
    header: &FragmentHeader,
    number: u32,
    begin: SegmentBegin,
    removed: &Removed,
    names: &[u8],
) -> Vec<u8> {
    let (pid, mut header) = (header.pid, header.clone());
    header.segment = number;
    (header.open_ns, header.late_ns) = (begin.open_ns, begin.late_ns);
    let mut text = metadata_line(pid, &header);
    text.extend(metadata_line(pid, &begin.anchor));
    if removed.first > 0 {
        text.extend(metadata_line(pid, &streams(removed)));
    }
    text.extend_from_slice(names);
    if removed.first > 0 {
        let contents = &removed.contents;
        let span_ns = contents.ended_ns.saturating_sub(contents.began_ns);
        let record = LossRecord {
            cause: Cause::DiskBound.name().into(),
            events: contents.events,
            span_us: Some(span_ns / 1000),
            first: Some(removed.first),
            ..LossRecord::default()
        };
        text.extend(process_line(pid, contents.began_ns, &record));
    }
    text
}

fn streams(removed: &Removed) -> RemovedStreams {
    let slot_ends = removed
        .contents
        .slot_ends
        .iter()
        .zip(0..)
        .filter(|(slot_ends, _)| **slot_ends > 0);
    let streams = slot_ends.map(|(slot_ends, slot)| (slot, GENERATION, *slot_ends));
    RemovedStreams {
        first: removed.first,
        events: removed.contents.events,
        streams: streams.collect(),
    }
}
