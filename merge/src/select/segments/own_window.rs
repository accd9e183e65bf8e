//! The window in each recording's own time, determined from the headers of its segments.

use super::SegmentTimes;
use crate::clock::axis::{Axis, ns};
use crate::clock::clocks::{Clocks, RecordedClock};
use crate::clock::time_map::TimeMap;
use crate::event::edges::Edges;
use crate::event::era::{days, era_of_odd_times};
use crate::event::scan::{Part, line_start};
use crate::fragment::liveness::{Boot, boot, wall_clock};
use crate::fragment::recording::{Recording, UNWRITTEN_NS};
use crate::summary::summarize::{summarize, summarize_era};
use crate::{ClockBy, ClockOptions, Error, Moment, Window};
use rayon::prelude::*;
use sa_format::Anchor;
use std::collections::BTreeMap;
use std::time::Duration;

/// Error in ns that wall clocks may have in addition to what the anchors show.
const WALL_PAD_NS: i64 = 1_000_000_000;

/// Returns by how many ns a window extends beyond the one that was read, at most; 0 if it does not.
/// Both are in a recording's own time.
pub(super) fn missing_ns(read: Edges, window: Edges) -> i64 {
    let before = read.from_ns.saturating_sub(window.from_ns);
    before.max(window.to_ns.saturating_sub(read.to_ns)).max(0)
}

/// Returns the window of the last `last` of every recording. The run ends with its last event,
/// which is not known yet. The newest segment began before that event, or shortly after.
pub(super) fn last_windows(
    recordings: &[Recording],
    times: &[SegmentTimes],
    last: Duration,
) -> Vec<Edges> {
    let mut newest: BTreeMap<Boot, i64> = BTreeMap::new();
    for (recording, times) in recordings.iter().zip(times) {
        if let (Some(header), Some(own_ns)) = (recording.header(), times.newest_ns()) {
            let at_ns = own_ns.saturating_sub(header.monotonic_offset_ns);
            let newest = newest.entry(boot(header)).or_insert(at_ns);
            *newest = (*newest).max(at_ns);
        }
    }
    let window = |recording: &Recording| {
        let from_ns = recording.header().and_then(|header| {
            let newest_ns = newest.get(&boot(header))?.saturating_sub(UNWRITTEN_NS);
            let from_ns = newest_ns.saturating_sub(ns(last));
            from_ns.checked_add(header.monotonic_offset_ns)
        });
        Edges {
            from_ns: from_ns.unwrap_or(i64::MIN),
            ..Edges::OPEN
        }
    };
    recordings.iter().map(window).collect()
}

/// Returns the window of each recording, and the begin of the first event of each recording.
///
/// # Errors
/// Returns [`Error::Usage`] if the window has wall times and no anchor provides them.
pub(super) fn recording_windows(
    recordings: &[Recording],
    times: &[SegmentTimes],
    window: &Window,
    options: &ClockOptions,
) -> Result<(Vec<Edges>, Vec<Option<i64>>), Error> {
    let first_ns = |recording: &Recording| first_ns(recording, options.keep_times);
    let firsts_ns: Vec<Option<i64>> = recordings.par_iter().map(first_ns).collect();
    let anchors = times.iter().map(|times| times.anchors().copied().collect());
    let anchors: Vec<Vec<Anchor>> = anchors.collect();
    let inputs = recordings.iter().zip(&anchors).zip(&firsts_ns);
    let recorded_clocks = inputs.filter_map(|((recording, anchors), first_ns)| {
        Some(RecordedClock {
            header: recording.header()?,
            anchors,
            events_ns: first_ns.map(|first_ns| (first_ns, first_ns)),
        })
    });
    let recorded_clocks: Vec<RecordedClock<'_>> = recorded_clocks.collect();
    let clocks = Clocks::new(&recorded_clocks, options, None);
    let maps = clocks.maps(recordings);
    let Some(axis) = Axis::from_first_events(&firsts_ns, &maps, &clocks) else {
        return Ok((vec![Edges::OPEN; recordings.len()], firsts_ns));
    };
    let edges = axis.unchecked_edges(window)?;
    let pad_ns = pad_ns(recordings, times, window);
    // The clock of a host that is only aligned by flows is not known yet.
    let is_unplaced = |recording: &Recording| {
        let header = recording.clock_header();
        options.by == ClockBy::Flows
            && has_several_hosts(recordings)
            && header.is_some_and(|header| !clocks.is_placed(header))
    };
    let own = |(recording, map): (&Recording, &TimeMap)| match is_unplaced(recording) {
        true => Edges::OPEN,
        false => padded(edges.moved(|ns| map.back(ns)), pad_ns),
    };
    let windows = recordings.iter().zip(&maps).map(own).collect();
    Ok((windows, firsts_ns))
}

/// Returns true if there are several hosts.
fn has_several_hosts(recordings: &[Recording]) -> bool {
    let mut boots = recordings
        .iter()
        .filter_map(|recording| recording.header().map(boot));
    let first = boots.next();
    boots.any(|boot| Some(boot) != first)
}

/// Widens the edges by `pad_ns` on both sides.
fn padded(edges: Edges, pad_ns: i64) -> Edges {
    let pad = |ns: i64, open: i64, by_ns: i64| match ns == open {
        true => open,
        false => ns.saturating_add(by_ns),
    };
    Edges {
        from_ns: pad(edges.from_ns, i64::MIN, -pad_ns),
        to_ns: pad(edges.to_ns, i64::MAX, pad_ns),
    }
}

/// Returns how far the window may move once all anchors of the segments are known. It does not move
/// if only one monotonic clock matters. If clocks were set between the anchors known here, it may
/// move further, and the report shows that.
fn pad_ns(recordings: &[Recording], times: &[SegmentTimes], window: &Window) -> i64 {
    let mut walls: BTreeMap<Boot, (i64, i64)> = BTreeMap::new();
    for (recording, times) in recordings.iter().zip(times) {
        let Some(header) = recording.header() else {
            continue;
        };
        for anchor in times.anchors() {
            let wall_ns = wall_clock(header, anchor);
            let range = walls.entry(boot(header)).or_insert((wall_ns, wall_ns));
            *range = (range.0.min(wall_ns), range.1.max(wall_ns));
        }
    }
    let moments = match *window {
        Window::Between { from, to, .. } => [from, to],
        Window::Around { moment, .. } => [Some(moment), None],
        Window::WholeRun | Window::Last(_) => [None, None],
    };
    let is_wall = |moment: &Moment| matches!(moment, Moment::Wall(_));
    if !has_several_hosts(recordings) && !moments.iter().flatten().any(is_wall) {
        return 0;
    }
    let walls = walls.values();
    let widths = walls.map(|(least, most)| most.saturating_sub(*least));
    let widest = widths.max().unwrap_or(0).min(i64::MAX / 8);
    WALL_PAD_NS + 2 * widest
}

/// Number of bytes of the first segment that are read to find the first event.
const FRONT_BYTES: usize = 1 << 20;

/// Returns the begin of the first event in a recording's own time, according to its first lines,
/// the headers of its segments, and the open spans in its ring. A recording with a single segment
/// is read completely.
pub(super) fn first_ns(recording: &Recording, keeps_times: bool) -> Option<i64> {
    let bytes = recording.fragments.first()?.content.bytes();
    let end = match bytes.len() {
        len if len <= FRONT_BYTES || recording.fragments.len() == 1 => len,
        _ => line_start(bytes, FRONT_BYTES, 0),
    };
    let part = Part::from_range(0..end, false);
    let mut summary = summarize(bytes, &[part]);
    let days = || days(bytes, part);
    let range_ns = summary.range_ns().filter(|_| !keeps_times);
    let era = range_ns.and_then(|range_ns| era_of_odd_times(range_ns, &summary.anchors, days));
    if let Some(era) = era {
        summary = summarize_era(bytes, &[part], Some(era));
    }
    let slots = recording.ring.iter().flat_map(|(ring, _)| &ring.slots);
    let lanes = recording.ring.iter().flat_map(|(ring, _)| &ring.lanes);
    let open = slots.flat_map(|slot| &slot.open);
    let open = open.chain(lanes.map(|lane| &lane.span));
    let open = open.filter_map(|span| i64::try_from(span.start_ns).ok());
    let fragments = recording.fragments.iter();
    let headers = fragments.filter_map(|fragment| fragment.header.as_ref());
    let begun = headers.filter_map(|header| i64::try_from(header.open_ns?).ok());
    let first = summary.range_ns().map(|(first_ns, _)| first_ns);
    open.chain(begun).chain(first).min()
}
