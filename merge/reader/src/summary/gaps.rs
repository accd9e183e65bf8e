//! Creates loss records for gaps: positions of a recorder that nothing covers and no record explains. Each record is put on the track that lost the
//! events.

use crate::event::era::Era;
use crate::event::line::{Event, parse};
use crate::event::loss::GAP;
use crate::event::scan::line_start;
use crate::fragment::assembly::{Assembly, Gap, StreamKey};
use crate::fragment::blocks::Positions;
use crate::fragment::recording::Recording;
use crate::summary::chunk_summary::Explained;
use sa_format::loss::LossRecord;
use std::collections::HashMap;
use std::ops::Range;

/// Maximum number of lines that are searched for an event on each side of a gap.
const MOST_LINES: usize = 64;

/// Positions that the loss records of a recording explain, by stream.
pub struct Explanations(HashMap<StreamKey, Positions>);

impl Explanations {
    /// Collects the positions that the loss records of a recording explain, grouped by stream.
    pub fn from_losses(explained: &[Explained]) -> Explanations {
        let mut streams: HashMap<StreamKey, Positions> = HashMap::new();
        for (stream, range) in explained {
            streams.entry(*stream).or_default().add(range.clone());
        }
        Explanations(streams)
    }

    /// Returns the ranges of positions in a gap that no loss record explains.
    pub fn missing(&self, gap: &Gap) -> Vec<Range<u64>> {
        let (none, range) = (Positions::default(), gap.range.clone());
        self.0.get(&gap.stream).unwrap_or(&none).missing(range)
    }
}

/// Returns the ranges of lost positions that no loss record explains, each with its gap. `explained` comes from the loss records. The result is
/// empty if the recorder has `stopped` recording events, because nothing is missing then.
pub fn missing<'a>(
    assembly: &'a Assembly,
    explained: &[Explained],
    stopped: bool,
) -> Vec<(&'a Gap, Range<u64>)> {
    if stopped || assembly.gaps.is_empty() {
        return Vec::new();
    }
    let explanations = Explanations::from_losses(explained);
    let missing_in = |gap| {
        let ranges = explanations.missing(gap).into_iter();
        ranges.map(move |range| (gap, range))
    };
    assembly.gaps.iter().flat_map(missing_in).collect()
}

/// Returns the lines of the loss records for `missing`, one per range of positions. `times_ns` is the time range of all events of the recording;
/// the result is empty if it is `None`. Times outside of `era` (the plausible times of the recording) are not trusted.
pub fn gap_records(
    recording: &Recording,
    missing: &[(&Gap, Range<u64>)],
    times_ns: Option<(i64, i64)>,
    era: Option<Era>,
) -> Vec<u8> {
    let Some(range_ns) = times_ns else {
        return Vec::new();
    };
    let record = |(gap, positions): &(&Gap, Range<u64>)| {
        Neighbours::find(recording, gap, era).record(positions, recording, range_ns)
    };
    missing.iter().flat_map(record).collect()
}

/// The events next to a gap in its stream.
struct Neighbours<'a> {
    /// True for the stream of the process itself, which contains events of several tracks.
    is_of_process: bool,
    before: Option<Event<'a>>,
    after: Option<Event<'a>>,
}

impl<'a> Neighbours<'a> {
    /// Finds the nearest events before and after a gap whose times are in `era`, the plausible times of the recording.
    fn find(recording: &'a Recording, gap: &Gap, era: Option<Era>) -> Neighbours<'a> {
        let is_good = |event: &Event<'_>| era.is_none_or(|era| era.holds_event(event));
        let timed = |line| timed(line).filter(is_good);
        let bytes = |segment: usize| recording.fragments[segment].content.bytes();
        let before = gap.before.and_then(|(segment, end)| {
            let bytes = &bytes(segment)[..end];
            backwards(bytes).find_map(timed)
        });
        let in_fragment = gap.after.map(|(segment, at)| &bytes(segment)[at..]);
        let after = in_fragment.or_else(|| {
            let (ring, _) = recording.ring.as_ref()?;
            let key = |slot: u32, generation: u32| (slot, generation) == gap.stream;
            let mut slots = ring.slots.iter();
            let slot = slots.find(|slot| key(slot.slot, slot.generation))?;
            (slot.from >= gap.range.end).then_some(&slot.bytes[..])
        });
        let lines = |bytes: &'a [u8]| bytes.split(|byte| *byte == b'\n').take(MOST_LINES);
        Neighbours {
            is_of_process: gap.stream.0 == 0,
            before,
            after: after.and_then(|bytes| lines(bytes).find_map(timed)),
        }
    }

    /// Returns the line of the loss record for a range of `missing` positions. It covers the time between the ends of the neighbours, because a
    /// stream is sorted by the ends of its events. Without a neighbour, the edge of `range_ns` (the time range of the recording) is used.
    fn record(&self, missing: &Range<u64>, recording: &Recording, range_ns: (i64, i64)) -> Vec<u8> {
        let (first_ns, last_ns) = range_ns;
        let end = |event: &Event<'_>| event.ts_ns.saturating_add(event.dur_ns);
        let from_ns = self.before.as_ref().map_or(first_ns, end);
        let to_ns = self.after.as_ref().map_or(last_ns, end).max(from_ns);
        let pid = recording.header().map_or(0, |header| header.pid.into());
        let neighbour = self.before.as_ref().or(self.after.as_ref());
        let thread = neighbour.filter(|_| !self.is_of_process);
        let (pid, tid) = match thread {
            Some(event) => (event.pid, event.tid),
            None => (pid, pid),
        };
        let record = LossRecord {
            is_thread_scoped: thread.is_some(),
            cause: GAP.into(),
            events: 1,
            span_us: Some(to_ns.saturating_sub(from_ns).unsigned_abs() / 1000),
            bytes: missing.end - missing.start,
            ..LossRecord::default()
        };
        record.line((pid, tid), from_ns)
    }
}

/// Iterates backwards over the lines of `bytes`, which ends with a line break. Stops after [`MOST_LINES`] lines.
fn backwards(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut end = bytes.len();
    let next = move || {
        let line_end = end.checked_sub(1)?;
        let start = line_start(bytes, line_end, 0);
        end = start;
        Some(&bytes[start..line_end])
    };
    std::iter::from_fn(next).take(MOST_LINES)
}

/// Parses a line as an event. Returns `None` if it is not an event or has no time, like metadata.
fn timed(line: &[u8]) -> Option<Event<'_>> {
    let event = parse(line).ok()?;
    (!event.is_metadata()).then_some(event)
}
