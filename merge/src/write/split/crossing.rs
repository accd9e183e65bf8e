//! Spans that are two lines, and cross a cut.
//!
//! A begin without its end would be drawn to the end of its part, and an end without its begin not at all. So both are shown in each part that the
//! span reaches into; what has one half alone is where that is. Only begins and ends of which the other has not come yet are remembered.

use super::Stretch;
use super::bins::Amount;
use crate::event::edges::Lies;
use crate::event::line::Event;
use crate::event::patch::Target;
use crate::select::filter_scan::whole;
use crate::span::group_key::{Role, Whole};
use crate::write::copy::Job;
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Chunks that are read before what they hold is put together.
const CHUNKS: usize = 64;
/// How much longer a line may get by the ids and the time it has in the trace.
const LONGER: usize = 64;

/// The halves of spans that reach into other parts, of each chunk: which events they are and the parts they reach into.
#[derive(Default)]
pub(crate) struct Crossing {
    of_chunks: HashMap<usize, Vec<Reach>>,
    /// What they add to each part, beside what is there by its time.
    more: Vec<Amount>,
}

struct Reach {
    nth: u32,
    parts: RangeInclusive<usize>,
}

/// What a span belongs to: an id, or a thread of the trace.
type Key = (Whole, u64);

/// Begin or end of a span.
#[derive(Clone, Copy)]
struct Half {
    key: Key,
    is_begin: bool,
    at_ns: i64,
    chunk: usize,
    nth: u32,
    bytes: usize,
}

/// Puts halves together.
#[derive(Default)]
struct Pairing {
    begins: HashMap<Key, Vec<Half>>,
    ends: HashMap<Key, Vec<Half>>,
    /// Spans that cross a cut.
    crossing: Vec<(Half, Half)>,
}

impl Crossing {
    /// The numbers of a chunk's events that are in that part wherever they lie, ascending.
    pub(super) fn kept(&self, chunk: usize, part: usize) -> Vec<u32> {
        let reaches = self.of_chunks.get(&chunk).into_iter().flatten();
        let kept = reaches.filter(|reach| reach.parts.contains(&part));
        kept.map(|reach| reach.nth).collect()
    }

    /// What is added to a part.
    pub(super) fn more(&self, part: usize) -> Amount {
        self.more.get(part).copied().unwrap_or_default()
    }

    fn add(&mut self, half: &Half, parts: RangeInclusive<usize>, own: usize) {
        for part in parts.clone().filter(|part| *part != own) {
            self.more[part].add(Amount {
                bytes: (half.bytes + super::cut::MARK + LONGER) as u64,
                events: 1,
            });
        }
        let nth = half.nth;
        self.of_chunks
            .entry(half.chunk)
            .or_default()
            .push(Reach { nth, parts });
    }
}

/// Finds them. Nothing is read if the trace has no such spans.
pub(super) fn find_crossing(job: &Job<'_>, stretches: &[Stretch]) -> Crossing {
    let mut crossing = Crossing {
        more: vec![Amount::default(); stretches.len()],
        ..Crossing::default()
    };
    let begins: Vec<i64> = stretches
        .iter()
        .map(|stretch| stretch.edges.from_ns)
        .collect();
    let part = |at_ns: i64| begins.partition_point(|begin| *begin <= at_ns) - 1;
    let crosses = |begin: &Half, end: &Half| part(begin.at_ns) != part(end.at_ns);
    if stretches.len() < 2 {
        return crossing;
    }
    let numbers: Vec<usize> = (0..job.chunks.len())
        .filter(|number| job.chunks[*number].halves)
        .collect();
    let mut pairing = Pairing::default();
    for numbers in numbers.chunks(CHUNKS) {
        let of_chunk = |number: &usize| of_chunk(job, *number, &crosses);
        let found: Vec<Pairing> = numbers.par_iter().map(of_chunk).collect();
        found
            .into_iter()
            .for_each(|found| pairing.append(found, &crosses));
    }
    for (begin, end) in pairing.finish(&crosses) {
        let (first, last) = (part(begin.at_ns), part(end.at_ns));
        crossing.add(&begin, first..=last, first);
        crossing.add(&end, first..=last, last);
    }
    for reaches in crossing.of_chunks.values_mut() {
        reaches.sort_unstable_by_key(|reach| reach.nth);
    }
    crossing
}

fn of_chunk(job: &Job<'_>, number: usize, crosses: &impl Fn(&Half, &Half) -> bool) -> Pairing {
    let chunk = &job.chunks[number];
    let source = &job.sources[chunk.source];
    let targets = &job.plan.targets[source.recording];
    let shift_ns = job.plan.shifts_ns[source.recording];
    let mut pairing = Pairing::default();
    chunk.each(source.bytes, |nth, lies, event| {
        if lies == Lies::Outside {
            return;
        }
        let target = targets.get(&(event.pid, event.tid));
        let Some((key, is_begin)) = target.and_then(|target| half(event, target)) else {
            return;
        };
        let half = Half {
            key,
            is_begin,
            at_ns: event.ts_ns.saturating_add(shift_ns),
            chunk: number,
            nth,
            bytes: event.line.len(),
        };
        pairing.add(half, crosses);
    });
    pairing
}

/// What the span of an event belongs to, and whether it begins it; `None` if it is no half of one.
fn half(event: &Event<'_>, target: &Target) -> Option<(Key, bool)> {
    let (of, role) = whole(event, target, (0, false))?;
    let thread = match of {
        Whole::Thread(_) => xxh3_64_with_seed(&target.tid, xxh3_64_with_seed(&target.pid, 0)),
        _ => 0,
    };
    match role {
        Role::Begin => Some(((of, thread), true)),
        Role::End => Some(((of, thread), false)),
        _ => None,
    }
}

impl Pairing {
    fn add(&mut self, half: Half, crosses: &impl Fn(&Half, &Half) -> bool) {
        if half.is_begin {
            self.begins.entry(half.key).or_default().push(half);
            return;
        }
        let begins = self.begins.get_mut(&half.key);
        match begins.and_then(Vec::pop) {
            Some(begin) if crosses(&begin, &half) => self.crossing.push((begin, half)),
            Some(_) => {}
            None => self.ends.entry(half.key).or_default().push(half),
        }
    }

    /// Adds what comes after: its lone ends may be those of begins here.
    fn append(&mut self, later: Pairing, crosses: &impl Fn(&Half, &Half) -> bool) {
        self.crossing.extend(later.crossing);
        let halves = later.ends.into_values().chain(later.begins.into_values());
        halves.flatten().for_each(|half| self.add(half, crosses));
        self.begins.retain(|_, begins| !begins.is_empty());
    }

    /// All that cross. The two halves of what is left may stand in files of which the one with the end came first.
    fn finish(mut self, crosses: &impl Fn(&Half, &Half) -> bool) -> Vec<(Half, Half)> {
        let ends = std::mem::take(&mut self.ends);
        let mut late: Vec<Half> = Vec::new();
        for (key, ends) in ends {
            let begins = self.begins.remove(&key).unwrap_or_default();
            late.extend(begins);
            late.extend(ends);
        }
        late.sort_unstable_by_key(|half| (half.at_ns, half.chunk, half.nth));
        late.into_iter().for_each(|half| self.add(half, crosses));
        self.crossing
    }
}
