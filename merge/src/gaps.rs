//! Positions of a recorder that nothing covers and no record explains: a loss record for each, on the row whose events they were.

use crate::assembly::{Assembly, Gap};
use crate::blocks::Positions;
use crate::index::{Explained, index_parts};
use crate::line::{Event, parse};
use crate::losses::GAP;
use crate::recording::Recording;
use crate::scan::{Part, line_start};
use crate::source::{Chunk, Source};
use sa_recorder::format::{LOSS_RECORD, OWN_CATEGORY};
use std::fmt::Write;
use std::ops::Range;

/// Most lines that are looked at for an event on each side of a gap.
const MOST_LINES: usize = 64;

/// The positions of a gap that no loss record explains.
pub(crate) fn unexplained(gap: &Gap, explained: &[Explained]) -> Vec<Range<u64>> {
    let mut covered = Positions::default();
    for (stream, range) in explained {
        if *stream == gap.stream {
            covered.add(range.clone());
        }
    }
    covered.missing(gap.range.clone())
}

/// Adds a record for each gap that no loss record explains, now that it is known which these are.
pub(crate) fn add_gaps<'a>(
    recordings: &'a [Recording],
    assemblies: &'a [Assembly],
    sources: &mut Vec<Source<'a>>,
    chunks: &mut Vec<Chunk>,
) {
    for (number, (recording, assembly)) in recordings.iter().zip(assemblies).enumerate() {
        if assembly.gaps.is_empty() {
            continue;
        }
        let mut own: Vec<_> = sources
            .iter_mut()
            .filter(|source| source.recording == number)
            .collect();
        let missing = missing(assembly, &own);
        let lines = assembly
            .gap_lines
            .get_or_init(|| records(recording, &missing, &own));
        if lines.is_empty() {
            // Nothing has a time at which they could stand.
            if let Some(first) = own.first_mut() {
                first.index.lost_events += missing.len() as u64;
            }
            continue;
        }
        let Some(path) = recording.path() else {
            continue;
        };
        let all = vec![Part::all_of(lines)];
        let index = index_parts(lines, &all, None);
        chunks.push(Chunk::of(sources.len(), all, &index));
        let mut source = Source::of_lines(number, path, lines);
        source.index = index;
        sources.push(source);
    }
}

/// The positions that no loss record explains, each with its gap.
fn missing<'a>(assembly: &'a Assembly, sources: &[&mut Source<'_>]) -> Vec<(&'a Gap, Range<u64>)> {
    if sources.iter().any(|source| source.index.stopped) {
        return Vec::new();
    }
    let explained = sources.iter().map(|source| &source.index.explained);
    let explained: Vec<Explained> = explained.flatten().cloned().collect();
    let of = |gap: &'a Gap| {
        let ranges = unexplained(gap, &explained).into_iter();
        ranges.map(move |range| (gap, range))
    };
    assembly.gaps.iter().flat_map(of).collect()
}

/// The records of missing positions, a line each; none if nothing in the recording has a time.
fn records(
    recording: &Recording,
    missing: &[(&Gap, Range<u64>)],
    sources: &[&mut Source<'_>],
) -> Vec<u8> {
    let ranges = sources.iter().map(|source| source.index.range_ns());
    let mut lines = String::new();
    if let Some(range_ns) = ranges.flatten().reduce(joined) {
        for (gap, positions) in missing {
            Near::of(recording, gap).record(positions, (recording, range_ns), &mut lines);
        }
    }
    lines.into_bytes()
}

fn joined(one: (i64, i64), other: (i64, i64)) -> (i64, i64) {
    (one.0.min(other.0), one.1.max(other.1))
}

/// The events next to a gap in its stream.
struct Near<'a> {
    /// Whether the stream is the process's own one, in which there are events of several rows.
    is_of_process: bool,
    before: Option<Event<'a>>,
    after: Option<Event<'a>>,
}

impl<'a> Near<'a> {
    fn of(recording: &'a Recording, gap: &Gap) -> Near<'a> {
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
        Near {
            is_of_process: gap.stream.0 == 0,
            before,
            after: after.and_then(|bytes| lines(bytes).find_map(timed)),
        }
    }

    /// Appends the record of missing positions; `first_ns` and `last_ns` are the times of all events of the recording. Events stand in a stream
    /// in the order of their ends.
    fn record(
        &self,
        missing: &Range<u64>,
        (recording, (first_ns, last_ns)): (&Recording, (i64, i64)),
        lines: &mut String,
    ) {
        let end = |event: &Event<'_>| event.ts_ns.saturating_add(event.dur_ns);
        let from_ns = self.before.as_ref().map_or(first_ns, end);
        let to_ns = self.after.as_ref().map_or(last_ns, end).max(from_ns);
        let pid = recording.header().map_or(0, |header| header.pid.into());
        let neighbour = self.before.as_ref().or(self.after.as_ref());
        let thread = neighbour.filter(|_| !self.is_of_process);
        let (pid, tid, scope) = match thread {
            Some(event) => (event.pid, event.tid, 't'),
            None => (pid, pid, 'p'),
        };
        let (us, ns) = (from_ns.div_euclid(1000), from_ns.rem_euclid(1000));
        let span_us = to_ns.saturating_sub(from_ns) / 1000;
        let bytes = missing.end - missing.start;
        let _ = writeln!(
            lines,
            r#"{{"ph":"i","pid":{pid},"tid":{tid},"ts":{us}.{ns:03},"s":"{scope}","name":"{LOSS_RECORD}","cat":"{OWN_CATEGORY}","args":{{"cause":"{GAP}","events":1,"span_us":{span_us},"bytes":{bytes}}}}}"#
        );
    }
}

/// The last lines of some bytes that end with one, the last one first.
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

/// The event of a line, if it has a time.
fn timed(line: &[u8]) -> Option<Event<'_>> {
    let event = parse(line).ok()?;
    (!event.is_metadata()).then_some(event)
}
