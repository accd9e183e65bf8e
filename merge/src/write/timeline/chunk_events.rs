//! Collects the events of one chunk for sorting.

use super::order::{OrderedEvent, Targets};
use crate::event::edges::Relation;
use crate::event::line::{Event, is_left_out, parse_canonical};
use crate::event::prefix_cache::PrefixCache;
use crate::event::scan::{Part, lines};
use crate::lanes::assign::Form;
use crate::lanes::moves::ChunkMoves;
use crate::pass::chunk::{Chunk, EventRef};
use crate::summary::chunk_summary::thread_kind;
use crate::write::writer::Job;
use std::collections::HashMap;

/// A thread, and the number of its target if it has one.
type ThreadTarget = ((i64, i64), Option<u32>);

/// Collector for the events of one chunk.
pub(super) struct EventCollector<'a> {
    number: u32,
    bytes: &'a [u8],
    shift_ns: i64,
    by_thread: &'a HashMap<(i64, i64), u32>,
    first_lane: u32,
    /// Last thread of each kind of threads.
    recent: [Option<ThreadTarget>; 64],
    /// Events that move to another lane.
    moved: ChunkMoves<'a>,
    nth: u32,
    entries: Vec<OrderedEvent>,
}

/// Returns the events of a chunk in their order.
pub(super) fn chunk_events(
    job: &Job<'_>,
    targets: &Targets<'_>,
    number: usize,
    chunk: &Chunk,
) -> Vec<OrderedEvent> {
    let source = &job.sources[chunk.source];
    let mut collector = EventCollector {
        number: u32::try_from(number).unwrap_or(u32::MAX),
        bytes: source.bytes,
        shift_ns: job.plan.shifts_ns[source.recording],
        by_thread: &targets.by_thread[source.recording],
        first_lane: targets.first_lane,
        recent: [None; 64],
        moved: job.extra_lanes.chunk_moves(number, job.sources),
        nth: 0,
        entries: Vec::with_capacity(usize::try_from(chunk.events).unwrap_or(0)),
    };
    if chunk.needs_only_shift() {
        chunk
            .parts
            .iter()
            .for_each(|part| collector.canonical(*part));
    } else {
        chunk.for_each_event(source.bytes, |_, relation, event| {
            let cut = chunk.cut(event);
            collector.event(cut.as_ref().unwrap_or(event), relation);
        });
    }
    collector.entries
}

impl<'a> EventCollector<'a> {
    /// Adds the lines of a part with only canonical lines. Nearly all begin like an earlier one, so
    /// that only their time is parsed.
    fn canonical(&mut self, part: Part) {
        let mut fronts: PrefixCache<'a, u32> = PrefixCache::default();
        for (line, at) in lines(self.bytes, part) {
            if let Some((front, timed)) = fronts.find(line) {
                self.add(
                    timed.ts_ns + self.shift_ns,
                    (at, line.len()),
                    front.known,
                    false,
                );
            } else if let Some(event) = parse_canonical(line) {
                if let Some(target) = self.target(&event) {
                    fronts.keep(&event, || target);
                }
                self.event(&event, Relation::Inside);
            }
        }
    }

    fn event(&mut self, event: &Event<'_>, relation: Relation) {
        let is_shown = relation != Relation::Outside && !is_left_out(event);
        let Some(own) = self.target(event).filter(|_| is_shown) else {
            // Advance even if the event is not shown.
            self.moved.next();
            self.nth += 1;
            return;
        };
        let ts_ns = match event.is_metadata() {
            true => i64::MIN,
            false => event.ts_ns + self.shift_ns,
        };
        let start = event.line.as_ptr().addr() - self.bytes.as_ptr().addr();
        self.add(
            ts_ns,
            (start, event.line.len()),
            own,
            relation == Relation::Across,
        );
    }

    /// Adds an event, given its thread's own target.
    #[inline(always)]
    fn add(&mut self, ts_ns: i64, line: (usize, usize), own: u32, is_cut: bool) {
        let moved = self.moved.next();
        let at = EventRef {
            chunk: self.number,
            nth: self.nth,
        };
        self.nth += 1;
        if moved.form == Form::Omitted {
            return;
        }
        let target = moved.lane.map_or(own, |lane| self.first_lane + lane);
        self.entries.push(OrderedEvent {
            ts_ns,
            at,
            start: line.0 as u64,
            len: u32::try_from(line.1).unwrap_or(0),
            target: OrderedEvent::marked_target(target, is_cut, moved.form == Form::Whole),
        });
    }

    #[inline]
    fn target(&mut self, event: &Event<'_>) -> Option<u32> {
        let thread = (event.pid, event.tid);
        let recent = &mut self.recent[thread_kind(thread)];
        if recent.is_none_or(|(last, _)| last != thread) {
            *recent = Some((thread, self.by_thread.get(&thread).copied()));
        }
        recent.and_then(|(_, target)| target)
    }
}
