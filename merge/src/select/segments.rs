//! Chooses the segments that a window needs, by their headers. The others are not read.
//!
//! A segment is needed if it was still being written when the window began, and if a line in it may
//! begin before the window ends. Its header contains the start of the oldest span that was open
//! when the segment began. The newest segments are always read, because they contain the spans that
//! were open at the end (docs/decisions/0073).

mod own_window;

use crate::clock::axis::ns;
use crate::event::edges::Edges;
use crate::fragment::file::Fragment;
use crate::fragment::recording::{Recording, UNWRITTEN_NS};
use crate::{ClockOptions, Error, Window};
use own_window::{last_windows, missing_ns, recording_windows};
use rayon::prelude::*;
use sa_format::Anchor;

/// Segments that a window does not need.
#[derive(Debug, Default)]
pub(crate) struct UnreadSegments {
    /// Window in the own time of each recording for which segments were read; empty if everything
    /// is read.
    windows: Vec<Edges>,
    /// Begin of the first event of each recording in its own time; empty if everything is read.
    pub(crate) firsts_ns: Vec<Option<i64>>,
    /// Time in ns after the window up to which segments were read, if `--reach` may have left out
    /// spans.
    pub(crate) reach_ns: Option<u64>,
    /// Number of segments that are not read.
    pub(crate) segments: u64,
    /// Total length of these segments in bytes.
    pub(crate) bytes: u64,
}

impl UnreadSegments {
    /// Returns by how many ns a window extends beyond the segments that were read, in the own times
    /// of the recordings; 0 if it does not.
    pub(crate) fn missing_ns(&self, windows: impl Iterator<Item = Edges>) -> i64 {
        let both = self.windows.iter().zip(windows);
        let missing = both.map(|(read, window)| missing_ns(*read, window));
        missing.max().unwrap_or(0)
    }
}

/// Removes all segments from the recordings that a window does not need.
///
/// # Errors
/// Returns [`Error::Usage`] if the window cannot be located.
pub(crate) fn choose_segments(
    recordings: &mut [Recording],
    window: &Window,
    clocks: &ClockOptions,
) -> Result<UnreadSegments, Error> {
    let has_several = recordings
        .iter()
        .any(|recording| recording.fragments.len() > 1);
    if window.is_whole_run() || !has_several {
        return Ok(UnreadSegments::default());
    }
    let times: Vec<SegmentTimes> = recordings.par_iter().map(SegmentTimes::new).collect();
    let mut unread = UnreadSegments::default();
    (unread.windows, unread.firsts_ns) = match *window {
        Window::Last(last) => (last_windows(recordings, &times, last), Vec::new()),
        _ => recording_windows(recordings, &times, window, clocks)?,
    };
    let reach_ns = window.reach().map(ns);
    let all = recordings.iter_mut().zip(&times).zip(&unread.windows);
    for ((recording, times), window) in all {
        let needs = times.needs(*window, reach_ns, recording.newest_at_copy);
        if needs.contains(&Need::BeyondReach) {
            unread.reach_ns = reach_ns.map(i64::unsigned_abs);
        }
        let needed: Vec<bool> = needs.iter().map(|need| *need == Need::Needed).collect();
        for (fragment, needed) in recording.fragments.iter().zip(&needed) {
            if !needed {
                unread.segments += 1;
                unread.bytes += fragment.bytes();
            }
        }
        recording.keep_segments(&needed);
    }
    if unread.segments == 0 {
        return Ok(UnreadSegments::default());
    }
    Ok(unread)
}

/// Need of a window for a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Needed,
    NotNeeded,
    /// It may be needed, but is farther away than `--reach`.
    BeyondReach,
}

/// Times in the headers of a recording's segments.
struct SegmentTimes {
    /// First anchor of each segment, which was read when the segment began.
    begins: Vec<Option<Anchor>>,
    /// Time before which no line in a segment or a later one begins.
    least_ns: Vec<Option<i64>>,
}

impl SegmentTimes {
    fn new(recording: &Recording) -> SegmentTimes {
        let begin = |fragment: &Fragment| fragment.begin.filter(|_| fragment.header.is_some());
        let mut begins: Vec<Option<Anchor>> = recording.fragments.iter().map(begin).collect();
        drop_disordered(&mut begins);
        let fragments = recording.fragments.iter();
        let headers = || fragments.clone().map(|fragment| fragment.header.as_ref());
        // The newest segment has the greatest of all values.
        let late_ns = headers().flatten().filter_map(|header| header.late_ns);
        let late_ns = late_ns.max().map_or(0, signed);
        let least = |(begin, header): (&Option<Anchor>, Option<&_>)| {
            let header: &sa_format::FragmentHeader = header?;
            let open_ns = signed(header.open_ns?);
            Some(open_ns.min(own_ns(begin.as_ref()?).saturating_sub(late_ns)))
        };
        let mut least_ns: Vec<Option<i64>> = begins.iter().zip(headers()).map(least).collect();
        make_ascending(&mut least_ns);
        SegmentTimes { begins, least_ns }
    }

    /// Returns the anchors of all segments.
    fn anchors(&self) -> impl Iterator<Item = &Anchor> {
        self.begins.iter().flatten()
    }

    /// Returns the begin of the newest segment in the recording's own time.
    fn newest_ns(&self) -> Option<i64> {
        self.anchors().map(own_ns).max()
    }

    /// Returns, for each segment, if a window needs it. A segment is skipped if it ends before the
    /// window, or starts more than `reach_ns` after it. `newest_at_copy` is the newest segment at
    /// the time when the ring was copied: it and all later ones are always read.
    fn needs(
        &self,
        window: Edges,
        reach_ns: Option<i64>,
        newest_at_copy: Option<usize>,
    ) -> Vec<Need> {
        let last = self.begins.len().saturating_sub(1);
        let always = newest_at_copy.unwrap_or(last).min(last);
        let after = |ns: i64| window.to_ns.saturating_add(ns).saturating_add(UNWRITTEN_NS);
        let begin_ns = |segment: usize| Some(own_ns(self.begins.get(segment)?.as_ref()?));
        let need = |segment: usize| {
            let is_before = begin_ns(segment + 1).is_some_and(|end_ns| end_ns < window.from_ns);
            let is_after = self.least_ns[segment].is_some_and(|least_ns| least_ns > after(0));
            let is_beyond = begin_ns(segment).zip(reach_ns);
            match is_beyond.is_some_and(|(begin_ns, reach_ns)| begin_ns > after(reach_ns)) {
                _ if segment >= always => Need::Needed,
                _ if is_before || is_after => Need::NotNeeded,
                true => Need::BeyondReach,
                false => Need::Needed,
            }
        };
        (0..self.begins.len()).map(need).collect()
    }
}

/// Drops anchors that contradict others. No checksum protects the first lines of a segment, so if
/// an anchor is later than one of a later segment, neither of them is used.
fn drop_disordered(begins: &mut [Option<Anchor>]) {
    let times = begins.iter().map(|begin| begin.as_ref().map(own_ns));
    let times: Vec<Option<i64>> = times.collect();
    let mut latest = None;
    for (begin, at_ns) in begins.iter_mut().zip(&times) {
        *begin = begin.filter(|_| *at_ns >= latest);
        latest = latest.max(*at_ns);
    }
    let mut least = i64::MAX;
    for (begin, at_ns) in begins.iter_mut().zip(&times).rev() {
        *begin = begin.filter(|_| at_ns.is_some_and(|at_ns| at_ns <= least));
        least = least.min(at_ns.unwrap_or(least));
    }
}

/// Lowers each time to the minimum of the later segments. Each time applies to all later segments
/// too, so a greater one is damaged. For the same reason, a segment without a time gets the time of
/// the segment before it.
fn make_ascending(least_ns: &mut [Option<i64>]) {
    let mut least = i64::MAX;
    for ns in least_ns.iter_mut().rev().flatten() {
        least = least.min(*ns);
        *ns = least;
    }
    let mut before = None;
    for ns in least_ns {
        *ns = ns.or(before);
        before = *ns;
    }
}

fn own_ns(anchor: &Anchor) -> i64 {
    signed(anchor.monotonic_ns)
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
