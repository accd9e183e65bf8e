//! Determines the clock that the times of another profiler's trace use.
//!
//! A trace may contain the origin of its times, or have times since 1970. It is then treated as a host of its own, whose monotonic clock counts from
//! that origin, with anchors that relate it to the wall clock. It is placed in the same way as other hosts. Any other trace is an error, which says
//! what would place it.

use super::members::DocumentMembers;
use crate::base::duration::duration_ns;
use crate::event::scan::{Found, Part, scan_part};
use crate::fragment::recording::Recording;
use sa_format::{Anchor, FragmentHeader, RingKind, VERSION};
use std::path::PathBuf;

/// Plausible wall times in ns: 2001 to 2043.
const WALL_NS: std::ops::Range<i64> = 1_000_000_000_000_000_000..2_300_000_000_000_000_000;
/// Uncertainty of times that were written as microseconds.
const UNCERTAINTY_NS: u64 = 1_000;
/// Number of bytes at the front of a fragment that are searched for its first event.
const FRONT_BYTES: usize = 1 << 16;

/// Origin of a trace's times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TimeOrigin {
    /// A wall time in ns, and the name of its source.
    Wall(i64, &'static str),
    /// The monotonic clock of a host whose processes are in the trace.
    Host(Box<FragmentHeader>),
    /// Unknown; contains what was found instead.
    Unknown(String),
}

impl TimeOrigin {
    /// Determines the origin of a trace's times from the members of its document. `time` is the begin of the first event and the end of the last
    /// one, in ns as written.
    pub(super) fn from_document(members: &DocumentMembers, time: Option<(i64, i64)>) -> TimeOrigin {
        let Some((first_ns, last_ns)) = time else {
            return TimeOrigin::Unknown("no event with a time".to_owned());
        };
        let is_wall = |base_ns: i64| {
            let in_range = |ns: i64| WALL_NS.contains(&base_ns.saturating_add(ns));
            in_range(first_ns) && in_range(last_ns)
        };
        match members.base_ns {
            Some(base_ns) if is_wall(base_ns) => TimeOrigin::Wall(base_ns, "baseTimeNanoseconds"),
            _ if is_wall(0) => TimeOrigin::Wall(0, "times since 1970"),
            Some(base_ns) => TimeOrigin::Unknown(format!(
                "baseTimeNanoseconds {base_ns} with times from {}, which is in no year from 2001 to 2043",
                seconds(first_ns)
            )),
            None => TimeOrigin::Unknown(format!(
                "no baseTimeNanoseconds, and times from {} to {}",
                seconds(first_ns),
                seconds(last_ns)
            )),
        }
    }
}

/// The clock to which the traces in a merge are related.
pub(super) struct ReferenceClock {
    /// Header of a process with the reference clock.
    pub(super) reference: Option<FragmentHeader>,
    /// True if there are fragments and none of them has an anchor.
    pub(super) lacks_wall: bool,
    /// The earliest time on that clock, as far as it is known.
    pub(super) start_ns: Option<i64>,
}

impl ReferenceClock {
    /// Determines the reference clock from the fragments of a merge. The main process's clock is preferred.
    pub(super) fn from_fragments(recordings: &[Recording]) -> ReferenceClock {
        let headers = || recordings.iter().filter_map(Recording::header);
        let main = headers().find(|header| header.main);
        let starts = recordings.iter().filter_map(start_ns);
        ReferenceClock {
            reference: main.or(headers().next()).cloned(),
            lacks_wall: !recordings.is_empty()
                && recordings
                    .iter()
                    .all(|recording| recording_anchor(recording).is_none()),
            start_ns: starts.min(),
        }
    }
}

/// Returns the first anchor (reading of the monotonic and the wall clock) of a recording; `None` if it has none.
pub(super) fn recording_anchor(recording: &Recording) -> Option<Anchor> {
    recording.fragments.first()?.begin
}

/// Returns the begin of a recording in ns on its host's monotonic clock: the time of its first anchor, or else of its first event.
fn start_ns(recording: &Recording) -> Option<i64> {
    let first = recording.fragments.first()?;
    let ahead_ns = recording
        .header()
        .map_or(0, |header| header.monotonic_offset_ns);
    if first.begin.is_some() {
        return Some(first.begin_ns()?.saturating_sub(ahead_ns));
    }
    let bytes = first.content.bytes();
    let (front, mut start_ns) = (&bytes[..bytes.len().min(FRONT_BYTES)], None);
    scan_part(front, Part::whole(front), |_, found| {
        if let Found::Event(event) = found
            && !event.is_metadata()
        {
            start_ns.get_or_insert(event.ts_ns.saturating_sub(ahead_ns));
        }
    });
    start_ns
}

/// Creates the header that stands for the clock of a trace with this name. The trace is treated as a host of its own.
pub(super) fn own_clock(name: &str) -> FragmentHeader {
    FragmentHeader {
        version: VERSION,
        host: name.to_owned(),
        boot_id: format!("clock of {name}"),
        ring: RingKind::Heap,
        ..FragmentHeader::default()
    }
}

/// Returns a copy of the header that stands for a clock, changed for a trace whose times are `offset_ns` less than the times of that clock.
pub(super) fn offset_clock(clock: &FragmentHeader, offset_ns: i64) -> FragmentHeader {
    FragmentHeader {
        monotonic_offset_ns: offset_ns.saturating_neg(),
        ..clock.clone()
    }
}

/// Creates the anchors for a trace whose times count from the wall time `base_ns`: one at its first and one at its last time, so that no drift is
/// estimated.
pub(super) fn anchors((first_ns, last_ns): (i64, i64), base_ns: i64) -> Vec<Anchor> {
    let at = |ns: i64| {
        Some(Anchor {
            monotonic_ns: u64::try_from(ns).ok()?,
            realtime_ns: u64::try_from(ns.checked_add(base_ns)?).ok()?,
            uncertainty_ns: UNCERTAINTY_NS,
        })
    };
    // Anchors cannot have times before 0.
    let first_ns = first_ns.max(0);
    [first_ns, last_ns.max(first_ns + 1)]
        .into_iter()
        .filter_map(at)
        .collect()
}

/// Formats nanoseconds as seconds without rounding, such as `-1.5s`.
pub(super) fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    let decimals = format!("{:09}", ns % 1_000_000_000);
    match decimals.trim_end_matches('0') {
        "" => format!("{sign}{}s", ns / 1_000_000_000),
        decimals => format!("{sign}{}.{decimals}s", ns / 1_000_000_000),
    }
}

/// Maximum offset. Beyond it, sums of times could overflow.
const LIMIT_NS: u64 = i64::MAX.cast_unsigned() / 4;

/// Duration to add to the times of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offset {
    /// Path of the input, as given on the command line.
    pub path: PathBuf,
    /// Duration in nanoseconds.
    pub ns: i64,
}

/// Parses the value of the option `--offset`: `FILE=±DURATION`, such as `trace.json=-1.5s`.
///
/// # Errors
/// Returns a description of the expected form if `text` has another one.
pub fn parse_offset(text: &str) -> Result<Offset, String> {
    let expected = || {
        format!(
            "expected FILE=DURATION such as trace.json=+1.5s or trace.json=-20ms, found {text:?}"
        )
    };
    let (path, duration) = text.rsplit_once('=').ok_or_else(expected)?;
    let ns = signed_ns(duration.trim()).ok_or_else(expected)?;
    if path.is_empty() {
        return Err(expected());
    }
    Ok(Offset {
        path: PathBuf::from(path),
        ns,
    })
}

/// Parses a duration with an optional sign into ns; `None` if it is malformed or exceeds [`LIMIT_NS`].
fn signed_ns(text: &str) -> Option<i64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let ns = duration_ns(text).filter(|ns| *ns <= LIMIT_NS)?;
    let ns = i64::try_from(ns).ok()?;
    Some(if negative { -ns } else { ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_NS: i64 = 1_795_352_704_292_000_846;

    #[test]
    fn a_wall_clock_is_one_that_shows_a_year_of_ours() {
        let base_ns = 1_790_857_026_000_000_000;
        let wall = |base_ns, by| Some(TimeOrigin::Wall(base_ns, by));
        let (base, epoch) = ("baseTimeNanoseconds", "times since 1970");
        for (base_ns, first_ns, expected) in [
            (Some(base_ns), NOW_NS - base_ns, wall(base_ns, base)),
            (None, NOW_NS, wall(0, epoch)),
            // Some versions of Kineto write both.
            (Some(base_ns), NOW_NS, wall(0, epoch)),
            (Some(0), NOW_NS, wall(0, base)),
            (None, 5, None),
            (None, -5, None),
            (Some(7), 36_000_000_000_000, None),
            (Some(i64::MAX), 9, None),
        ] {
            let members = DocumentMembers {
                base_ns,
                ..DocumentMembers::default()
            };
            let origin = TimeOrigin::from_document(&members, Some((first_ns, first_ns + 5)));
            let found = Some(origin).filter(|origin| !matches!(origin, TimeOrigin::Unknown(_)));
            assert_eq!(found, expected, "{base_ns:?} {first_ns}");
        }
    }

    #[test]
    fn offsets_have_a_sign_and_a_unit() {
        for case in include_str!("../../tests/offsets.txt").lines() {
            let (text, ns) = case.split_once(' ').unwrap();
            let ns: i64 = ns.parse().unwrap();
            assert_eq!(parse_offset(text).map(|offset| offset.ns), Ok(ns), "{text}");
        }
        assert_eq!(parse_offset("a=b=0s").unwrap().path, PathBuf::from("a=b"));
        for text in "|t.json|t.json=|=1s|t.json=1|t.json=+-1s|t.json=99999999999h".split('|') {
            assert!(parse_offset(text).is_err(), "{text}");
        }
    }
}
