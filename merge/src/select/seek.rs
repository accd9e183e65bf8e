//! Which parts of the recordings a window can reach. The others are not read.
//!
//! Three parts of each recording remain: those in which the window was written, the first lines of every segment, and the end of the newest segment. The
//! first lines have the names in force, the end has what was open then. docs/decisions/0037 says why, and what may be missed behind a window.

mod edge;
mod exit;
mod known;
mod start;

use crate::clock::axis::ns;
use crate::event::edges::Edges;
use crate::event::line::parse_canonical;
use crate::event::own_record::is_left_out;
use crate::fragment::anchors::{entry, front};
use crate::fragment::file::Fragment;
use crate::fragment::recording::Recording;
use crate::select::window::is_asked_for;
use crate::{Error, Options};
use edge::{OwnStretch, found_stretches, last_stretches, window_stretches};
use exit::{Exit, Until};
use known::SegmentTimes;
use rayon::prelude::*;
use std::ops::Range;
use std::time::Duration;

/// Runs up to this size are read whole, unless it is said how far behind the window to look.
const SMALL_BYTES: u64 = 1 << 30;
/// How far behind a window spans that reach into it are looked for, where a recorder does not say what was open.
const REACH: Duration = Duration::from_secs(10);

/// How much of a run is read.
pub(crate) enum Extent {
    /// What a window needs, placed by the first and the newest anchors.
    Sought,
    /// What it needs where it was found to lie, in each recording's own time.
    Within(Vec<Edges>),
    Whole,
}

impl Extent {
    /// What to try when the window was found to lie beyond what was read.
    pub(crate) fn wider(self, edges: Vec<Edges>) -> Extent {
        match self {
            Extent::Sought => Extent::Within(edges),
            Extent::Within(_) | Extent::Whole => Extent::Whole,
        }
    }
}

/// What a search for a window found.
#[derive(Debug, Default)]
pub(crate) struct Sought {
    /// What was read of each recording's time; empty if everything was.
    stretches: Vec<OwnStretch>,
    /// The first event of each recording, in its own time; empty where that follows from what is read.
    pub(crate) firsts_ns: Vec<Option<i64>>,
    /// How far behind the window was looked, if not to the end of the run.
    pub(crate) reach_ns: Option<u64>,
    /// Segments of which no event is read, and bytes of all segments that are not.
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
}

impl Sought {
    /// Whether a window lies within what was read.
    pub(crate) fn holds(&self, edges: &[Edges]) -> bool {
        let mut both = self.stretches.iter().zip(edges);
        both.all(|(stretch, edges)| stretch.holds(edges))
    }

    /// Whether what begins at a time of a recording may be shown.
    pub(crate) fn may_show(&self, recording: usize, begin_ns: i64) -> bool {
        let stretch = self.stretches.get(recording);
        let to_ns = stretch.and_then(|stretch| stretch.to_ns);
        to_ns.is_none_or(|to_ns| begin_ns <= to_ns)
    }
}

/// Leaves in each recording what a window can reach.
///
/// # Errors
/// If the window cannot be placed.
pub(crate) fn seek(
    recordings: &mut [Recording],
    options: &Options,
    extent: &Extent,
) -> Result<Sought, Error> {
    let is_small = options.reach.is_none() && bytes(recordings) <= SMALL_BYTES;
    let is_whole = matches!(extent, Extent::Whole) || options.last.is_none() && is_small;
    if !is_asked_for(options) || is_whole {
        return Ok(Sought::default());
    }
    let known: Vec<SegmentTimes> = recordings.par_iter().map(SegmentTimes::of).collect();
    let mut sought = Sought::default();
    if options.last.is_none() {
        let first_ns = |recording: &Recording| start::first_ns(recording, options.keep_times);
        sought.firsts_ns = recordings.par_iter().map(first_ns).collect();
    }
    sought.stretches = match (extent, options.last) {
        (Extent::Within(edges), _) if edges.len() == recordings.len() => {
            found_stretches(recordings, edges)
        }
        (_, Some(last)) => last_stretches(recordings, &known, last),
        _ => window_stretches(recordings, &known, &sought.firsts_ns, options)?,
    };
    let reach_ns = options.reach.map(ns);
    let all = recordings.par_iter_mut().zip(&known);
    let all = all.zip(&sought.stretches);
    let left: Vec<Left> = all
        .map(|((recording, known), stretch)| narrow(recording, known, *stretch, reach_ns))
        .collect();
    sought.segments = left.iter().map(|left| left.segments).sum();
    sought.bytes = left.iter().map(|left| left.bytes).sum();
    let may_miss = left.iter().any(|left| left.may_miss);
    let looked_ns = reach_ns.unwrap_or(ns(REACH)).unsigned_abs();
    sought.reach_ns = may_miss.then_some(looked_ns);
    Ok(sought)
}

fn bytes(recordings: &[Recording]) -> u64 {
    let fragments = recordings.iter().flat_map(|of| &of.fragments);
    fragments.map(Fragment::bytes).sum()
}

/// What is not read of a recording.
struct Left {
    /// Segments of which no event is read.
    segments: u64,
    bytes: u64,
    /// Whether something that is not may reach into the window.
    may_miss: bool,
}

/// Leaves a part of a recording; spans that were recorded `reach_ns` after it are looked for, all if that is not said.
fn narrow(
    recording: &mut Recording,
    known: &SegmentTimes,
    stretch: OwnStretch,
    reach_ns: Option<i64>,
) -> Left {
    let start = stretch.from_ns.map_or(0, |at_ns| known.segment_at(at_ns));
    let until = stretch.to_ns.map(|to_ns| Until {
        to_ns,
        reach_ns,
        blind_ns: ns(REACH),
    });
    let exit = until.and_then(|until| Exit::of(recording, known, start, until));
    let exit = exit.filter(|exit| !known.is_tail(exit.end));
    recording.unsure = exit.map(|exit| exit.sure..exit.end);
    let last = exit.map_or(recording.fragments.len(), |exit| exit.end.0);
    let (tail_segment, tail_at) = known.tail;
    let first = start.min(tail_segment);
    let (mut segments, all) = (first as u64, bytes(std::slice::from_ref(recording)));
    for (number, fragment) in recording.fragments.iter_mut().enumerate().skip(first) {
        if fragment.header.is_none() {
            continue; // it has no blocks, and no anchors
        }
        let bytes = fragment.content.bytes();
        let within = (start..=last).contains(&number).then(|| {
            let from_ns = stretch.from_ns.filter(|_| number == start);
            let begin = from_ns.map_or(0, |from_ns| entry(bytes, from_ns));
            let end = exit.filter(|exit| exit.end.0 == number);
            begin..end.map_or(bytes.len(), |exit| exit.end.1)
        });
        if number == start {
            recording.entry = within.as_ref().map(|within| (number, within.start));
        }
        let is_first = number == tail_segment;
        let tail = (number >= tail_segment).then_some(if is_first { tail_at } else { 0 });
        segments += u64::from(within.is_none() && tail.is_none());
        let mut wanted = match number > last + 1 {
            true => own_front(
                bytes,
                fragment.removal.as_ref().map(|removal| &removal.line),
            ),
            false => vec![front(bytes)],
        };
        wanted.extend(within);
        wanted.extend(tail.map(|tail| tail..bytes.len()));
        fragment.extents = extents(wanted, bytes.len());
    }
    recording.skip(first);
    let read: u64 = recording.fragments.iter().map(Fragment::bytes_read).sum();
    Left {
        segments,
        bytes: all.saturating_sub(read),
        may_miss: exit.is_some_and(|exit| !exit.exact),
    }
}

/// The first lines of a segment behind the window: those that name a thread may name a later one of the same id.
fn own_front(bytes: &[u8], told: Option<&Range<usize>>) -> Vec<Range<usize>> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let is_own = |line: &&[u8]| {
        let event = parse_canonical(line.trim_ascii_end());
        event.is_some_and(|event| is_left_out(&event))
    };
    let own: usize = lines.take_while(is_own).map(<[u8]>::len).sum();
    std::iter::once(0..own).chain(told.cloned()).collect()
}

/// What is read of a segment of `len` bytes, in order; `None` is all.
fn extents(mut extents: Vec<Range<usize>>, len: usize) -> Option<Vec<Range<usize>>> {
    extents.retain(|extent| !extent.is_empty());
    extents.sort_by_key(|extent| extent.start);
    extents.dedup_by(|next, previous| {
        let touch = next.start <= previous.end;
        if touch {
            previous.end = previous.end.max(next.end);
        }
        touch
    });
    let read: usize = extents.iter().map(ExactSizeIterator::len).sum();
    (read < len).then_some(extents)
}
