//! Spans that cross a cut and have a begin and an end event.
//!
//! Viewers would draw a begin without its end to the end of the part, and would not draw an end
//! without its begin at all. So both events are in each part that the span overlaps. A begin or end
//! without a counterpart stays in its own part.

use super::bins::{MARK, PartRange, WHOLE_TIMES};
use crate::event::edges::Relation;
use crate::event::line::Event;
use crate::event::patch::Target;
use crate::pass::parallel::{BatchSize, map_chunks};
use crate::span::group_key::{GroupKey, GroupRole, group_and_role};
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
    /// Returns the numbers of those events of a chunk that `part` contains although their times may
    /// be in another part: begins and ends of spans that cross a cut. Ascending.
    pub(super) fn extra_events(&self, chunk: usize, part: usize) -> Vec<u32> {
        let shown = self.0.get(&chunk).into_iter().flatten();
        let in_part = shown.filter(|shown| shown.parts.contains(&part));
        in_part.map(|shown| shown.nth).collect()
    }
}

/// Maximum growth of a line, caused by its ids and time in the trace.
const MAX_GROWTH: usize = 64;

/// Group of a span, and hash of its thread in the trace.
type SpanKey = (GroupKey, u64);

/// Begin or end of a span.
#[derive(Clone, Copy)]
struct SpanEvent {
    key: SpanKey,
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
    begins: HashMap<SpanKey, Vec<SpanEvent>>,
    ends: HashMap<SpanKey, Vec<SpanEvent>>,
    /// Spans that cross a cut.
    crossing: Vec<(SpanEvent, SpanEvent)>,
}

/// Finds spans that cross a cut and have a begin and an end event. Adds the length of these events
/// to each part that contains them although their times are in another one. Reads nothing if the
/// trace has no such spans.
pub(super) fn find_crossing(job: &Job<'_>, part_ranges: &mut [PartRange]) -> Crossing {
    let mut crossing = Crossing::default();
    if part_ranges.len() < 2 {
        return crossing;
    }
    let parts_ns = part_ranges.iter().map(|range| range.edges.from_ns);
    let parts_ns: Vec<i64> = parts_ns.collect();
    let numbers = (0..job.chunks.len()).filter(|number| job.chunks[*number].has_begins_or_ends);
    let scan = |number: usize| pair_chunk(job, number, &parts_ns);
    let mut pairing = Pairing::new(&parts_ns);
    map_chunks(numbers, BatchSize::Large, scan).for_each(|found| pairing.append(found));
    for (begin, end) in pairing.finish() {
        let [first, last] = [begin, end].map(|event| part(&parts_ns, event.at_ns));
        for (event, own) in [(begin, first), (end, last)] {
            let (nth, parts) = (event.nth, first..=last);
            for part in parts.clone().filter(|part| *part != own) {
                part_ranges[part].bytes += (event.bytes + MARK + WHOLE_TIMES + MAX_GROWTH) as u64;
                part_ranges[part].events += 1;
            }
            let shown = crossing.0.entry(event.chunk).or_default();
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

fn pair_chunk<'a>(job: &Job<'_>, number: usize, parts_ns: &'a [i64]) -> Pairing<'a> {
    let chunk = &job.chunks[number];
    let source = &job.sources[chunk.source];
    let targets = &job.plan.targets[source.recording];
    let shift_ns = job.plan.shifts_ns[source.recording];
    let mut pairing = Pairing::new(parts_ns);
    chunk.for_each_event(source.bytes, |nth, relation, event| {
        if relation == Relation::Outside {
            return;
        }
        let target = targets.get(&(event.pid, event.tid));
        let Some((key, is_begin)) = target.and_then(|target| span_key(event, target)) else {
            return;
        };
        let cut = chunk.cut(event);
        let event = SpanEvent {
            key,
            is_begin,
            at_ns: cut.as_ref().unwrap_or(event).ts_ns.saturating_add(shift_ns),
            chunk: number,
            nth,
            bytes: event.line.len(),
        };
        pairing.add(event);
    });
    pairing
}

/// Returns the key of the span that an event begins or ends, and true if it is the begin.
fn span_key(event: &Event<'_>, target: &Target) -> Option<(SpanKey, bool)> {
    let (group, role) = group_and_role(event, target, 0, false)?;
    let thread = match group {
        GroupKey::Thread(_) => xxh3_64_with_seed(&target.tid, xxh3_64_with_seed(&target.pid, 0)),
        _ => 0,
    };
    match role {
        GroupRole::Begin => Some(((group, thread), true)),
        GroupRole::End => Some(((group, thread), false)),
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

    fn add(&mut self, event: SpanEvent) {
        if event.is_begin {
            self.begins.entry(event.key).or_default().push(event);
            return;
        }
        let begins = self.begins.get_mut(&event.key);
        match begins.and_then(Vec::pop) {
            Some(begin) => {
                if part(self.parts_ns, begin.at_ns) != part(self.parts_ns, event.at_ns) {
                    self.crossing.push((begin, event));
                }
            }
            None => self.ends.entry(event.key).or_default().push(event),
        }
    }

    /// Adds the events of a later chunk. Its ends may belong to begins that are here.
    fn append(&mut self, later: Pairing<'a>) {
        self.crossing.extend(later.crossing);
        let events = later.ends.into_values().chain(later.begins.into_values());
        events.flatten().for_each(|event| self.add(event));
        self.begins.retain(|_, begins| !begins.is_empty());
    }

    /// Returns all spans that cross a cut. Events that are left may belong together, if the file
    /// with the end came first.
    fn finish(mut self) -> Vec<(SpanEvent, SpanEvent)> {
        let ends = std::mem::take(&mut self.ends);
        let mut unmatched: Vec<SpanEvent> = Vec::new();
        for (key, ends) in ends {
            let begins = self.begins.remove(&key).unwrap_or_default();
            unmatched.extend(begins);
            unmatched.extend(ends);
        }
        unmatched.sort_unstable_by_key(|event| (event.at_ns, event.chunk, event.nth));
        unmatched.into_iter().for_each(|event| self.add(event));
        self.crossing
    }
}
