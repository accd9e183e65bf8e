//! The first event of a recording, found without reading all of it.

use crate::event::era::{days_of, doubted};
use crate::event::scan::{Part, line_start};
use crate::fragment::recording::Recording;
use crate::summary::summarize::{summarize, summarize_era};

/// Number of bytes of the first segment that are read for it.
const FRONT_BYTES: usize = 1 << 20;

/// Returns the begin of the first event in a recording's own time, as far as its first lines, the headers of its segments, and the spans that are open in
/// its ring show it. All of a recording in one segment is read for it.
pub(super) fn first_ns(recording: &Recording, keeps_times: bool) -> Option<i64> {
    let bytes = recording.fragments.first()?.content.bytes();
    let end = match bytes.len() {
        len if len <= FRONT_BYTES || recording.fragments.len() == 1 => len,
        _ => line_start(bytes, FRONT_BYTES, 0),
    };
    let part = Part {
        start: 0,
        end,
        trusted: false,
    };
    let mut summary = summarize(bytes, &[part]);
    let days = || days_of(bytes, part);
    let range_ns = summary.range_ns().filter(|_| !keeps_times);
    let era = range_ns.and_then(|range_ns| doubted(range_ns, &summary.anchors, days));
    if let Some(era) = era {
        summary = summarize_era(bytes, &[part], Some(era));
    }
    let slots = recording.ring.iter().flat_map(|(ring, _)| &ring.slots);
    let lanes = recording.ring.iter().flat_map(|(ring, _)| &ring.lanes);
    let open = slots.flat_map(|slot| &slot.open);
    let open = open.chain(lanes.map(|lane| &lane.span));
    let open = open.filter_map(|span| i64::try_from(span.start_ns).ok());
    let headers = recording
        .fragments
        .iter()
        .filter_map(|fragment| fragment.header.as_ref());
    let begun = headers.filter_map(|header| i64::try_from(header.open_ns?).ok());
    let first = summary.range_ns().map(|(first_ns, _)| first_ns);
    open.chain(begun).chain(first).min()
}
