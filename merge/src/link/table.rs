//! The links of all requests, which the second pass looks up by id.

use super::mention::{EventPosition, Mention, RequestBounds, hash};
use super::program::styles::Style;
use sa_format::Phase;
use trace_store::hashed_map::{HashedMap, HashedSet};

/// Flow of a request, and the events at which it begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Number of the merge's own flow.
    pub(super) flow: u64,
    pub(super) first: EventPosition,
    pub(super) last: EventPosition,
    /// Flow that the program draws for the request.
    pub(super) program_flow: Option<ProgramFlow>,
}

/// A flow that the program draws. The merge continues it on other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProgramFlow {
    /// Its id in the trace, which is never 0.
    pub(super) id: u64,
    pub(super) style: Style,
    /// Start time in ns, on the axis of the trace.
    pub(super) start_ns: i64,
    /// End time in ns; `i64::MAX` if nothing ends it.
    pub(super) end_ns: i64,
    /// Key of the thread on which it starts.
    pub(super) thread: u64,
    /// True if arrows lead up to its start, because the request has an event before that.
    pub(super) has_prior_events: bool,
    /// True if the program draws it on other threads, too.
    pub(super) is_on_other_threads: bool,
}

/// Links of all ids, and data about the flows that the program draws.
#[derive(Default)]
pub(super) struct LinkTable {
    /// Slot of each id.
    pub(super) slots: HashedMap<u32>,
    /// Index of the link of each slot, or `u32::MAX` if there is no link.
    pub(super) link_of_slot: Vec<u32>,
    pub(super) links: Vec<Link>,
    /// Number of links of requests without a flow of the program.
    pub(super) requests: u64,
    /// True if arrows of the merge lead to the start of any flow of the program.
    pub(super) has_prior_links: bool,
    /// Times of the events of the merge's own flows.
    pub(super) times: TimeRanges,
    /// Keys of the threads of flows that the program draws on several threads ([`ProgramFlow::thread_key`]).
    pub(super) threads: HashedSet,
    /// Members `"name":…,"cat":…` of each style.
    pub(super) styles: Vec<Vec<u8>>,
}

/// A worker's view of the links.
pub(crate) struct Lookup<'a> {
    pub(super) table: &'a LinkTable,
    /// Flow events written with it.
    pub(crate) written: LinkedEvents,
}

/// Number of flow events that the merge has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkedEvents {
    /// Events of the merge's own flows.
    pub(crate) linked: u64,
    /// Events that were added to flows of the program.
    pub(crate) joined: u64,
}

impl std::ops::AddAssign for LinkedEvents {
    fn add_assign(&mut self, more: LinkedEvents) {
        self.linked += more.linked;
        self.joined += more.joined;
    }
}

impl LinkTable {
    /// Adds the link of a request if it may have arrows. Returns true if it does. Links are
    /// numbered from 1, because short ids make short lines.
    ///
    /// An arrow needs two events. One event is enough if the program draws a flow that it may join.
    pub(super) fn add(&mut self, bounds: &RequestBounds, flow: Option<ProgramFlow>) -> bool {
        let RequestBounds {
            first,
            second_ns,
            last,
        } = *bounds;
        let has_events = *bounds != RequestBounds::NONE;
        if !(bounds.is_chain() || flow.is_some() && has_events) {
            return false;
        }
        // An arrow from a span to itself, where the flow starts, would be useless.
        let has_prior_events = |flow: &ProgramFlow| {
            second_ns < flow.start_ns || first.ts_ns < flow.start_ns && !first.contains_start(flow)
        };
        let flow = flow.map(|flow| ProgramFlow {
            has_prior_events: has_prior_events(&flow),
            ..flow
        });
        match flow {
            None => {
                self.requests += 1;
                self.times.add((first.ts_ns, last.0));
            }
            Some(flow) if flow.has_prior_events => {
                self.has_prior_links = true;
                self.times.add((first.ts_ns, flow.start_ns));
            }
            Some(_) => {}
        }
        self.links.push(Link {
            flow: self.links.len() as u64 + 1,
            first: first.position,
            last: last.1,
            program_flow: flow,
        });
        true
    }

    /// Returns the link of an id, if it has one.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<&Link> {
        self.link_at(*self.slots.get(&key)?)
    }

    /// Returns the link of the id in a slot, if it has one.
    pub(super) fn link_at(&self, slot: u32) -> Option<&Link> {
        let position = self.link_of_slot.get(slot as usize)?;
        self.links.get(*position as usize)
    }

    /// Returns the members `"name":…,"cat":…` of a style.
    pub(super) fn style(&self, style: Style) -> &[u8] {
        let style = self.styles.get(style.0 as usize);
        style.map_or(br#""name":"""#, Vec::as_slice)
    }
}

impl ProgramFlow {
    /// Returns the sort key by which flows of one request are preferred.
    pub(super) fn order(&self) -> (i64, u64, Style) {
        (self.start_ns, self.id, self.style)
    }

    /// Returns the key of the flow on a thread.
    pub(super) fn thread_key(&self, thread: u64) -> u64 {
        hash([self.id, u64::from(self.style.0), thread])
    }
}

impl Link {
    /// Returns the flow of the program that a request's first span on a thread joins, if the
    /// program draws nothing there. `threads` contains the threads of flows that are drawn on
    /// several threads. Viewers reject steps outside of the flow.
    pub(super) fn step(&self, mention: &Mention, threads: &HashedSet) -> Option<ProgramFlow> {
        let flow = self.program_flow?;
        let is_within = flow.start_ns < mention.ts_ns && mention.ts_ns < flow.end_ns;
        let is_drawn = mention.thread == flow.thread
            || flow.is_on_other_threads && threads.contains(&flow.thread_key(mention.thread));
        (is_within && !is_drawn).then_some(flow)
    }

    /// Returns the phase of an event of the request in the merge's own flow, if it is part of it.
    ///
    /// The first event starts the flow. The last one ends it, unless it is a span without an end,
    /// because it is unknown what came after it.
    pub(super) fn phase(&self, mention: &Mention) -> Option<Phase> {
        let is_first = mention.position == self.first;
        let is_last = match self.program_flow {
            None => mention.position == self.last && !mention.position.is_unfinished(),
            Some(flow) => {
                let is_prior = flow.has_prior_events && mention.ts_ns < flow.start_ns;
                if !is_prior || !is_first && mention.contains_start(&flow) {
                    return None;
                }
                false
            }
        };
        Some(match (is_first, is_last) {
            (true, _) => Phase::FlowStart,
            (_, true) => Phase::FlowEnd,
            _ => Phase::FlowStep,
        })
    }

    /// Returns true if a flow event starts the program's flow, where the merge's own flow ends.
    pub(super) fn ends_at(&self, start: &Mention) -> bool {
        let flow = self.program_flow.filter(|flow| flow.has_prior_events);
        flow.is_some_and(|flow| (flow.start_ns, flow.thread) == (start.ts_ns, start.thread))
    }
}

/// Maximum number of time ranges.
const MAX_RANGES: usize = 1024;

/// Disjoint time ranges, in order. If there are too many, the shortest gaps between them are
/// filled.
#[derive(Debug, Default)]
pub(super) struct TimeRanges {
    ranges: Vec<(i64, i64)>,
}

impl TimeRanges {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds a range, including its end.
    pub(super) fn add(&mut self, (start, end): (i64, i64)) {
        let first = self.ranges.partition_point(|one| one.1 < start);
        let end_index = self.ranges.partition_point(|one| one.0 <= end);
        if first >= end_index {
            self.ranges.insert(first, (start, end));
            if self.ranges.len() > 2 * MAX_RANGES {
                self.fill_gaps();
            }
            return;
        }
        let whole = (
            start.min(self.ranges[first].0),
            end.max(self.ranges[end_index - 1].1),
        );
        self.ranges[first] = whole;
        self.ranges.drain(first + 1..end_index);
    }

    /// Fills the shortest gaps.
    fn fill_gaps(&mut self) {
        let gap = |one: &(i64, i64), next: &(i64, i64)| next.0.abs_diff(one.1);
        let pairs = self.ranges.windows(2);
        let mut gaps: Vec<u64> = pairs.map(|pair| gap(&pair[0], &pair[1])).collect();
        let filled = gaps.len() - (MAX_RANGES - 1);
        let (_, longest, _) = gaps.select_nth_unstable(filled - 1);
        let longest = *longest;
        self.ranges.dedup_by(|next, one| {
            let fills = gap(one, next) <= longest;
            if fills {
                one.1 = next.1;
            }
            fills
        });
    }

    /// Returns true if a range overlaps one of these.
    pub(super) fn overlap(&self, (start, end): (i64, i64)) -> bool {
        let first = self.ranges.partition_point(|one| one.1 < start);
        self.ranges.get(first).is_some_and(|one| one.0 <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_range_is_missed_among_many() {
        let mut times = TimeRanges::default();
        let start = |number: i64| number.wrapping_mul(7919) % 100_003 * 100;
        for number in 0..20_000 {
            times.add((start(number), start(number) + 10));
            assert!(times.ranges.len() <= 2 * MAX_RANGES);
        }
        assert!((0..20_000).all(|number| times.overlap((start(number) + 10, start(number) + 11))));
        assert!(!times.overlap((-10, -1)) && !times.overlap((20_000_000, i64::MAX)));
        // Ranges that are far apart stay separate.
        let mut times = TimeRanges::default();
        (0..1000).for_each(|number| times.add((number * 100, number * 100 + 10)));
        assert!((0..1000).all(|number| !times.overlap((number * 100 + 11, number * 100 + 99))));
    }
}
