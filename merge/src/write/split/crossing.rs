//! Spans that cross a cut and have a begin and an end event.
//!
//! Viewers would draw a begin without its end to the end of the part, and would not draw an end
//! without its begin at all. So both events are in each part that the span overlaps. A begin or end
//! without a counterpart stays in its own part.

use super::bins::{MARK, PartStretch, WHOLE_TIMES};
use crate::event::edges::Lies;
use crate::event::line::Event;
use crate::event::patch::Target;
use crate::pass::visit::{AtOnce, visit};
use crate::span::group_key::{GroupKey, GroupRole, whole};
use crate::write::writer::Job;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Begins and ends of spans that extend into other parts, for each chunk: the events and their
/// parts.
#[derive(Default)]
pub(crate) struct Crossing(HashMap<usize, Vec<ShownEvent>>);

/// An event that is in several parts, whatever its time.
struct ShownEvent {
    nth: u32,
    parts: RangeInclusive<usize>,
}

impl Crossing {
    /// Returns the numbers of a chunk's events that are in a part whatever their time, ascending.
    pub(super) fn kept(&self, chunk: usize, part: usize) -> Vec<u32> {
        let shown = self.0.get(&chunk).into_iter().flatten();
        let kept = shown.filter(|shown| shown.parts.contains(&part));
        kept.map(|shown| shown.nth).collect()
    }
}

/// Maximum growth of a line, caused by its ids and time in the trace.
const LONGER: usize = 64;

/// Group of a span, and hash of its thread in the trace.
type HalfKey = (GroupKey, u64);

/// Begin or end of a span.
#[derive(Clone, Copy)]
struct CrossingHalf {
    key: HalfKey,
    is_begin: bool,
    at_ns: i64,
    chunk: usize,
    nth: u32,
    bytes: usize,
}

/// Matches begins with ends. Only stores events without a counterpart, and spans that cross a cut.
#[derive(Default)]
struct Pairing<'a> {
    /// Begin of each part.
    parts_ns: &'a [i64],
    begins: HashMap<HalfKey, Vec<CrossingHalf>>,
    ends: HashMap<HalfKey, Vec<CrossingHalf>>,
    /// Spans that cross a cut.
    crossing: Vec<(CrossingHalf, CrossingHalf)>,
}

/// Finds begins and ends of spans that cross a cut, and adds their length to the parts that contain
/// them although their times are in others. Reads nothing if the trace has no such spans.
pub(super) fn find_crossing(job: &Job<'_>, stretches: &mut [PartStretch]) -> Crossing {
    let mut crossing = Crossing::default();
    if stretches.len() < 2 {
        return crossing;
    }
    let parts_ns = stretches.iter().map(|stretch| stretch.edges.from_ns);
    let parts_ns: Vec<i64> = parts_ns.collect();
    let numbers = (0..job.chunks.len()).filter(|number| job.chunks[*number].halves);
    let look = |number: usize| of_chunk(job, number, &parts_ns);
    let mut pairing = Pairing::new(&parts_ns);
    visit(numbers, AtOnce::Many, look).for_each(|found| pairing.append(found));
    for (begin, end) in pairing.finish() {
        let [first, last] = [begin, end].map(|half| part(&parts_ns, half.at_ns));
        for (half, own) in [(begin, first), (end, last)] {
            let (nth, parts) = (half.nth, first..=last);
            for part in parts.clone().filter(|part| *part != own) {
                stretches[part].bytes += (half.bytes + MARK + WHOLE_TIMES + LONGER) as u64;
                stretches[part].events += 1;
            }
            let shown = crossing.0.entry(half.chunk).or_default();
            shown.push(ShownEvent { nth, parts });
        }
    }
    for shown in crossing.0.values_mut() {
        shown.sort_unstable_by_key(|shown| shown.nth);
    }
    crossing
}

/// Returns the number of the part that contains a time.
fn part(parts_ns: &[i64], at_ns: i64) -> usize {
    parts_ns.partition_point(|begin| *begin <= at_ns) - 1
}

fn of_chunk<'a>(job: &Job<'_>, number: usize, parts_ns: &'a [i64]) -> Pairing<'a> {
    let chunk = &job.chunks[number];
    let source = &job.sources[chunk.source];
    let targets = &job.plan.targets[source.recording];
    let shift_ns = job.plan.shifts_ns[source.recording];
    let mut pairing = Pairing::new(parts_ns);
    chunk.each(source.bytes, |nth, lies, event| {
        if lies == Lies::Outside {
            return;
        }
        let target = targets.get(&(event.pid, event.tid));
        let Some((key, is_begin)) = target.and_then(|target| half(event, target)) else {
            return;
        };
        let cut = chunk.cut(event);
        let half = CrossingHalf {
            key,
            is_begin,
            at_ns: cut.as_ref().unwrap_or(event).ts_ns.saturating_add(shift_ns),
            chunk: number,
            nth,
            bytes: event.line.len(),
        };
        pairing.add(half);
    });
    pairing
}

/// Returns the key of the span that an event begins or ends, and true if it is the begin.
fn half(event: &Event<'_>, target: &Target) -> Option<(HalfKey, bool)> {
    let (of, role) = whole(event, target, 0, false)?;
    let thread = match of {
        GroupKey::Thread(_) => xxh3_64_with_seed(&target.tid, xxh3_64_with_seed(&target.pid, 0)),
        _ => 0,
    };
    match role {
        GroupRole::Begin => Some(((of, thread), true)),
        GroupRole::End => Some(((of, thread), false)),
        _ => None,
    }
}

impl<'a> Pairing<'a> {
    fn new(parts_ns: &'a [i64]) -> Pairing<'a> {
        Pairing {
            parts_ns,
            ..Pairing::default()
        }
    }

    fn add(&mut self, half: CrossingHalf) {
        if half.is_begin {
            self.begins.entry(half.key).or_default().push(half);
            return;
        }
        let begins = self.begins.get_mut(&half.key);
        match begins.and_then(Vec::pop) {
            Some(begin) => {
                if part(self.parts_ns, begin.at_ns) != part(self.parts_ns, half.at_ns) {
                    self.crossing.push((begin, half));
                }
            }
            None => self.ends.entry(half.key).or_default().push(half),
        }
    }

    /// Adds the events of a later chunk. Its ends may belong to begins that are here.
    fn append(&mut self, later: Pairing<'a>) {
        self.crossing.extend(later.crossing);
        let halves = later.ends.into_values().chain(later.begins.into_values());
        halves.flatten().for_each(|half| self.add(half));
        self.begins.retain(|_, begins| !begins.is_empty());
    }

    /// Returns all spans that cross a cut. Events that are left may belong together, if the file
    /// with the end came first.
    fn finish(mut self) -> Vec<(CrossingHalf, CrossingHalf)> {
        let ends = std::mem::take(&mut self.ends);
        let mut late: Vec<CrossingHalf> = Vec::new();
        for (key, ends) in ends {
            let begins = self.begins.remove(&key).unwrap_or_default();
            late.extend(begins);
            late.extend(ends);
        }
        late.sort_unstable_by_key(|half| (half.at_ns, half.chunk, half.nth));
        late.into_iter().for_each(|half| self.add(half));
        self.crossing
    }
}
