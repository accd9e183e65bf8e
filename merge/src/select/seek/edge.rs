//! Where a window lies in each recording's own time, before anything but anchors is known.

use super::known::SegmentTimes;
use crate::clock::axis::{Axis, ns};
use crate::clock::boot::{RecordedClock as KnownClock, wall_clock};
use crate::clock::clocks::Clocks;
use crate::clock::time_map::TimeMap;
use crate::event::edges::Edges;
use crate::fragment::recording::Recording;
use crate::{ClockBy, Error, Moment, Options};
use sa_recorder::format::{Anchor, FragmentHeader};
use std::collections::BTreeMap;
use std::time::Duration;

/// What wall clocks may be off besides what anchors show.
const WALL_PAD_NS: i64 = 1_000_000_000;

/// The part of a recording's own time in which a window lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnStretch {
    /// Nothing that was recorded before is wanted.
    pub(super) from_ns: Option<i64>,
    /// No span that begins later is.
    pub(super) to_ns: Option<i64>,
}

impl OwnStretch {
    /// The stretch between edges.
    pub(super) fn of(edges: &Edges) -> OwnStretch {
        OwnStretch {
            from_ns: (edges.from_ns != i64::MIN).then_some(edges.from_ns),
            to_ns: (edges.to_ns != i64::MAX).then_some(edges.to_ns),
        }
    }

    /// Whether a window lies within it.
    pub(super) fn holds(&self, edges: &Edges) -> bool {
        self.from_ns.is_none_or(|from_ns| from_ns <= edges.from_ns)
            && self.to_ns.is_none_or(|to_ns| to_ns >= edges.to_ns)
    }
}

/// A host since its last boot: its recordings share a clock.
type Boot<'a> = (&'a str, &'a str);

fn boot(header: &FragmentHeader) -> Boot<'_> {
    (&header.host, &header.boot_id)
}

/// The last `last` of every recording before the newest anchor of its host; the newest event may be older.
pub(super) fn last_stretches(
    recordings: &[Recording],
    known: &[SegmentTimes],
    last: Duration,
) -> Vec<OwnStretch> {
    let mut newest: BTreeMap<Boot<'_>, i64> = BTreeMap::new();
    for (recording, known) in recordings.iter().zip(known) {
        if let (Some(header), Some(own_ns)) = (recording.header(), known.newest_ns()) {
            let at_ns = own_ns.saturating_sub(header.monotonic_offset_ns);
            let newest = newest.entry(boot(header)).or_insert(at_ns);
            *newest = (*newest).max(at_ns);
        }
    }
    let stretch = |recording: &Recording| {
        let from_ns = recording.header().and_then(|header| {
            let newest_ns = newest.get(&boot(header))?.saturating_sub(ns(last));
            newest_ns.checked_add(header.monotonic_offset_ns)
        });
        OwnStretch {
            from_ns,
            to_ns: None,
        }
    };
    recordings.iter().map(stretch).collect()
}

/// The stretches in which a window with edges of its own lies.
///
/// # Errors
/// If the window has wall times and nothing says what they were.
pub(super) fn window_stretches(
    recordings: &[Recording],
    known: &[SegmentTimes],
    firsts_ns: &[Option<i64>],
    options: &Options,
) -> Result<Vec<OwnStretch>, Error> {
    let anchors: Vec<Vec<Anchor>> = known
        .iter()
        .map(|known| known.anchors().copied().collect())
        .collect();
    let of_clocks = recordings.iter().zip(&anchors).zip(firsts_ns);
    let of_clocks: Vec<KnownClock<'_>> = of_clocks.filter_map(known_clock).collect();
    let clocks = Clocks::new(&of_clocks, options, None);
    let maps = clocks.maps(recordings);
    let Some(axis) = Axis::sought(firsts_ns, &maps, &clocks) else {
        return Ok(vec![OwnStretch::default(); recordings.len()]);
    };
    let edges = axis.place_edges(options)?;
    let pad_ns = pad_ns(recordings, known, options);
    // Of a host that flows alone place nobody knows yet where it is.
    let is_lost = |recording: &Recording| {
        let header = recording.clock_header();
        options.clock == ClockBy::Flows
            && are_several(recordings)
            && header.is_some_and(|header| !clocks.is_placed(header))
    };
    let stretch = |(recording, map): (&Recording, &TimeMap)| match is_lost(recording) {
        true => OwnStretch::default(),
        false => OwnStretch::of(&padded(edges.moved(|ns| map.back(ns)), pad_ns)),
    };
    Ok(recordings.iter().zip(&maps).map(stretch).collect())
}

/// The stretches in which a window was found to lie, in each recording's own time. What is read there may place the clocks of several hosts a little elsewhere.
pub(super) fn found_stretches(recordings: &[Recording], found: &[Edges]) -> Vec<OwnStretch> {
    let pad_ns = match are_several(recordings) {
        true => WALL_PAD_NS,
        false => 0,
    };
    let stretch = |edges: &Edges| OwnStretch::of(&padded(*edges, pad_ns));
    found.iter().map(stretch).collect()
}

/// Whether there are several hosts.
fn are_several(recordings: &[Recording]) -> bool {
    let mut boots = recordings.iter().filter_map(|of| of.header().map(boot));
    let first = boots.next();
    boots.any(|boot| Some(boot) != first)
}

/// Wider by `pad_ns` on both sides.
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

/// What is known of a recording's clock.
fn known_clock<'a>(
    ((recording, anchors), first_ns): ((&'a Recording, &'a Vec<Anchor>), &Option<i64>),
) -> Option<KnownClock<'a>> {
    Some(KnownClock {
        header: recording.header()?,
        anchors,
        events_ns: first_ns.map(|first_ns| (first_ns, first_ns)),
    })
}

/// How far the place of a window may still move when all anchors of what is read are known: not at all where only one monotonic clock matters. Where
/// clocks were set between anchors that are known here, it may move further; then it is placed again.
fn pad_ns(recordings: &[Recording], known: &[SegmentTimes], options: &Options) -> i64 {
    let mut walls: BTreeMap<Boot<'_>, (i64, i64)> = BTreeMap::new();
    for (recording, known) in recordings.iter().zip(known) {
        let Some(header) = recording.header() else {
            continue;
        };
        for anchor in known.anchors() {
            let wall_ns = wall_clock(header, anchor);
            let range = walls.entry(boot(header)).or_insert((wall_ns, wall_ns));
            *range = (range.0.min(wall_ns), range.1.max(wall_ns));
        }
    }
    let moments = [options.from, options.to, options.around.map(|(at, _)| at)];
    let is_wall = |moment: &Moment| matches!(moment, Moment::Wall(_));
    if !are_several(recordings) && !moments.iter().flatten().any(is_wall) {
        return 0;
    }
    let widths = walls
        .values()
        .map(|(least, most)| most.saturating_sub(*least));
    let widest = widths.max().unwrap_or(0).min(i64::MAX / 8);
    WALL_PAD_NS + 2 * widest
}
