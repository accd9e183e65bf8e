//! Finds spans that are two lines, and cross a cut. Only begins and ends of which the other has not come yet are remembered.

use super::bins::{MARK, PartStretch, WHOLE_TIMES};
use super::crossing::{Crossing, ShownEvent};
use crate::event::edges::Lies;
use crate::event::line::Event;
use crate::event::patch::Target;
use crate::pass::visit::{AtOnce, visit};
use crate::select::filter_scan::whole;
use crate::span::group_key::{GroupKey, GroupRole};
use crate::write::job::Job;
use std::collections::HashMap;
use std::convert::Infallible;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// How much longer a line may get by the ids and the time it has in the trace.
const LONGER: usize = 64;

/// What a span belongs to: an id, or a thread of the trace.
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

/// Puts halves together.
#[derive(Default)]
struct Pairing {
    begins: HashMap<HalfKey, Vec<CrossingHalf>>,
    ends: HashMap<HalfKey, Vec<CrossingHalf>>,
    /// Spans that cross a cut.
    crossing: Vec<(CrossingHalf, CrossingHalf)>,
}

/// Finds them. Nothing is read if the trace has no such spans.
pub(super) fn find_crossing(job: &Job<'_>, stretches: &[PartStretch]) -> Crossing {
    let mut crossing = Crossing::of_parts(stretches.len());
    let begins: Vec<i64> = stretches
        .iter()
        .map(|stretch| stretch.edges.from_ns)
        .collect();
    let part = |at_ns: i64| begins.partition_point(|begin| *begin <= at_ns) - 1;
    let crosses = |begin: &CrossingHalf, end: &CrossingHalf| part(begin.at_ns) != part(end.at_ns);
    if stretches.len() < 2 {
        return crossing;
    }
    let numbers = (0..job.chunks.len()).filter(|number| job.chunks[*number].halves);
    let look = |number: usize| of_chunk(job, number, &crosses);
    let mut pairing = Pairing::default();
    let Ok(()) = visit(numbers, AtOnce::Many, look, |found| {
        pairing.append(found, &crosses);
        Ok::<(), Infallible>(())
    });
    for (begin, end) in pairing.finish(&crosses) {
        let (first, last) = (part(begin.at_ns), part(end.at_ns));
        for (half, own) in [(begin, first), (end, last)] {
            let parts = first..=last;
            let nth = half.nth;
            crossing.add(
                half.chunk,
                ShownEvent { nth, parts },
                own,
                half.bytes + MARK + WHOLE_TIMES + LONGER,
            );
        }
    }
    crossing.sort();
    crossing
}

fn of_chunk(
    job: &Job<'_>,
    number: usize,
    crosses: &impl Fn(&CrossingHalf, &CrossingHalf) -> bool,
) -> Pairing {
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
        let cut = chunk.cut(event);
        let half = CrossingHalf {
            key,
            is_begin,
            at_ns: cut.as_ref().unwrap_or(event).ts_ns.saturating_add(shift_ns),
            chunk: number,
            nth,
            bytes: event.line.len(),
        };
        pairing.add(half, crosses);
    });
    pairing
}

/// What the span of an event belongs to, and whether it begins it; `None` if it is no half of one.
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

impl Pairing {
    fn add(&mut self, half: CrossingHalf, crosses: &impl Fn(&CrossingHalf, &CrossingHalf) -> bool) {
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
    fn append(&mut self, later: Pairing, crosses: &impl Fn(&CrossingHalf, &CrossingHalf) -> bool) {
        self.crossing.extend(later.crossing);
        let halves = later.ends.into_values().chain(later.begins.into_values());
        halves.flatten().for_each(|half| self.add(half, crosses));
        self.begins.retain(|_, begins| !begins.is_empty());
    }

    /// All that cross. The two halves of what is left may stand in files of which the one with the end came first.
    fn finish(
        mut self,
        crosses: &impl Fn(&CrossingHalf, &CrossingHalf) -> bool,
    ) -> Vec<(CrossingHalf, CrossingHalf)> {
        let ends = std::mem::take(&mut self.ends);
        let mut late: Vec<CrossingHalf> = Vec::new();
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
