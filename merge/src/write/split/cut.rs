//! Chooses the cuts: the times at which a trace is divided into parts. There are as few as
//! possible, so that no part has more text than requested.

use super::bins::{Amount, Bins, MARK, PartRange, Sums};
use super::crossing::{Crossing, find_crossing};
use crate::Error;
use crate::event::edges::Edges;
use crate::pass::chunk::Chunk;
use crate::write::writer::Job;
use rayon::prelude::*;

/// Maximum number of parts. Each is an open file until all are complete.
const MAX_PARTS: usize = 500;
/// Bins should have at most this fraction of the requested length, as far as their events allow.
const FINENESS: u64 = 32;
/// Maximum number of times that cuts are moved to make room for begins and ends of crossing spans.
const MAX_ROUNDS: u32 = 4;
const MARK_BYTES: u64 = MARK as u64;

/// Cuts the trace into parts of at most `limit` bytes, including `frame_bytes` in each part.
///
/// # Errors
/// Returns [`Error::Usage`] if there would be too many parts.
pub(super) fn cut(
    job: &Job<'_>,
    frame_bytes: u64,
    limit: u64,
) -> Result<(Vec<PartRange>, Crossing), Error> {
    let (bins, sums) = measure(job, limit / FINENESS);
    let mut room = limit;
    let mut round = 1;
    loop {
        let mut part_ranges = part_ranges(&bins, &sums, frame_bytes, room);
        if part_ranges.len() > MAX_PARTS {
            return Err(too_many(&sums, frame_bytes, limit, part_ranges.len()));
        }
        let crossing = find_crossing(job, &mut part_ranges);
        let longest = part_ranges.iter().map(|range| range.bytes).max();
        let excess = longest.unwrap_or(0).saturating_sub(limit);
        if excess == 0 || round == MAX_ROUNDS {
            return Ok((part_ranges, crossing));
        }
        room = room.saturating_sub(excess);
        round += 1;
    }
}

/// Measures how many bytes of the trace begin and end in each bin (a short time range). Repeats
/// this with smaller bins while more than `max_bytes` begin in one.
fn measure(job: &Job<'_>, max_bytes: u64) -> (Bins, Sums) {
    let ranges = job.ranges_ns();
    let last_ns = ranges.iter().map(|(_, last)| *last).max().unwrap_or(0);
    let times = ranges.iter().flat_map(|(first, last)| [*first, *last]);
    let mut bins = Bins::new(times.collect());
    loop {
        let sums = sums(job, &bins);
        match bins.divided(&sums, max_bytes, last_ns) {
            Some(finer) => bins = finer,
            None => return (bins, sums),
        }
    }
}

fn sums(job: &Job<'_>, bins: &Bins) -> Sums {
    let bytes: u64 = job.chunks.iter().map(Chunk::len).sum();
    job.progress.expect_rest(2 * bytes);
    // Each share has sums of its own, so there should be few.
    let share = job.chunks.len() / (4 * rayon::current_num_threads());
    let numbers = (0..job.chunks.len()).into_par_iter();
    let measured = numbers.with_min_len(share.max(1)).fold(
        || (Vec::new(), Sums::new(bins)),
        |(mut text, mut sums), number| {
            text.clear();
            job.measure(number, &mut text, |event, begin_ns, bytes| {
                if event.is_in_every_part() {
                    return sums.timeless.add(Amount::event(bytes));
                }
                let end_ns = begin_ns.saturating_add(event.dur_ns);
                let end = (!event.is_unfinished()).then(|| bins.find(end_ns));
                sums.add(bins.find(begin_ns), end, bytes);
            });
            job.progress.add(job.chunks[number].len(), 0);
            (text, sums)
        },
    );
    let sums = measured.map(|(_, sums)| sums);
    sums.reduce(|| Sums::new(bins), Sums::joined)
}

/// Returns the time range and size of each part. A part gets as many bins as fit into `limit`
/// bytes, but at least one in which an event begins.
fn part_ranges(bins: &Bins, sums: &Sums, frame_bytes: u64, limit: u64) -> Vec<PartRange> {
    let (mut part_ranges, mut bin) = (Vec::new(), 0);
    // Events that have begun and not ended. A part contains the ones that are open at its begin.
    let mut open = Amount::default();
    while bin < bins.len() {
        let from = bin;
        let mut has = open;
        has.add(sums.timeless);
        let fixed = frame_bytes + MARK_BYTES * open.events;
        let (mut bytes, mut begun) = (0, 0);
        while bin < bins.len() {
            let (mut next_open, mut next_has) = (open, has);
            next_open.add(sums.begun[bin]);
            next_open.remove(sums.ended[bin]);
            next_has.add(sums.begun[bin]);
            let next_bytes = fixed + next_has.bytes + MARK_BYTES * next_open.events;
            if next_bytes > limit && begun > 0 {
                break;
            }
            begun += sums.begun[bin].events;
            (open, has, bytes) = (next_open, next_has, next_bytes);
            bin += 1;
        }
        let to_ns = bins.begin_ns(bin);
        part_ranges.push(PartRange {
            edges: Edges {
                from_ns: bins.begin_ns(from),
                to_ns: if to_ns == i64::MAX { to_ns } else { to_ns - 1 },
            },
            bytes,
            events: has.events,
        });
    }
    part_ranges
}

fn too_many(sums: &Sums, frame_bytes: u64, limit: u64, parts: usize) -> Error {
    let text: u64 = sums.begun.iter().map(|amount| amount.bytes).sum();
    let least = frame_bytes + sums.timeless.bytes + text / (MAX_PARTS as u64 / 2);
    Error::Usage(format!(
        "--split: expected a size that needs at most {MAX_PARTS} parts, such as {} MB; found {limit} bytes, which needs {parts}",
        least.div_ceil(1_000_000)
    ))
}
