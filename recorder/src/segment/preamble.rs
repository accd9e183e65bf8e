//! The first lines of a segment: with them it can be read when all older ones are gone.

use crate::format::{
    ANCHOR_RECORD, BlockAnchor, FRAGMENT_RECORD, FragmentHeader, REMOVED_RECORD, RemovedStreams,
};
use crate::ring::loss::removed_line;
use crate::ring::slot::GENERATION;
use crate::segment::bound::Removed;
use crate::sys::clock;
use crate::text::record::metadata_line;

/// Makes an anchor line of now.
pub(crate) fn anchor_line(pid: u32) -> Vec<u8> {
    metadata_line(pid, ANCHOR_RECORD, clock::anchor())
}

/// Makes an anchor line of now for a block; `open_ns` is the least start of what may be open.
pub(crate) fn block_anchor_line(pid: u32, open_ns: u64, late_ns: u64) -> (Vec<u8>, u64) {
    let anchor = clock::anchor();
    let record = BlockAnchor {
        anchor,
        open_ns: Some(open_ns.min(anchor.monotonic_ns)),
        late_ns: Some(late_ns),
    };
    (
        metadata_line(pid, ANCHOR_RECORD, record),
        anchor.monotonic_ns,
    )
}

/// The first lines of segment `number`: header, anchor, the names in force, and what went with removed segments. Its last line declares
/// these removed, and they are removed after it: whenever a kill comes, a segment counts or is told as lost.
pub(crate) fn preamble(
    header: &FragmentHeader,
    number: u32,
    removed: &Removed,
    names: &[u8],
) -> Vec<u8> {
    let (pid, mut header) = (header.pid, header.clone());
    header.segment = number;
    let mut text = metadata_line(pid, FRAGMENT_RECORD, header);
    text.extend(anchor_line(pid));
    if removed.first > 0 {
        text.extend(metadata_line(pid, REMOVED_RECORD, streams(removed)));
    }
    text.extend_from_slice(names);
    if removed.first > 0 {
        let contents = &removed.contents;
        let (began_ns, ended_ns) = (contents.began_ns, contents.ended_ns);
        let line = removed_line(pid, began_ns, ended_ns, contents.events, removed.first);
        text.extend_from_slice(line.as_bytes());
    }
    text
}

fn streams(removed: &Removed) -> RemovedStreams {
    let reached = removed.contents.reached.iter().zip(0..);
    let streams = reached.filter(|(reached, _)| **reached > 0);
    RemovedStreams {
        first: removed.first,
        events: removed.contents.events,
        streams: streams
            .map(|(reached, slot)| (slot, GENERATION, *reached))
            .collect(),
    }
}
