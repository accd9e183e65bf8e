//! The events of a trace in the order of their times.

use super::chunk_events::chunk_events;
use crate::event::patch::Target;
use crate::pass::chunk::{Chunk, EventRef};
use crate::pass::parallel::{BatchSize, map_chunks};
use crate::store::sorter::{Record, Sorted, Sorter};
use crate::write::writer::Job;
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// Number of events in a piece.
const PIECE: usize = 8192;

/// Events of a trace, sorted by time.
pub(crate) struct TimeOrder<'a> {
    /// Sorted events, in memory as far as possible.
    order: Sorted<OrderedEvent>,
    pub(super) targets: Targets<'a>,
    /// Total length of their chunks.
    bytes: u64,
}

impl<'a> TimeOrder<'a> {
    /// Sorts the events in `memory` bytes. If that is not enough, they go to files in `folder`.
    pub(crate) fn new(job: &Job<'a>, memory: usize, folder: &Path) -> io::Result<TimeOrder<'a>> {
        let targets = Targets::new(job);
        let bytes: u64 = job.chunks.iter().map(Chunk::len).sum();
        job.progress.expect_rest(bytes.saturating_mul(2));
        let mut sorter = Sorter::with_memory(folder, memory);
        let scan = |number: usize| chunk_events(job, &targets, number, &job.chunks[number]);
        let mut done = job.chunks.iter().map(Chunk::len);
        for entries in map_chunks(0..job.chunks.len(), BatchSize::Small, scan) {
            sorter.extend(entries)?;
            job.progress.add(done.next().unwrap_or(0), 0);
        }
        let order = sorter.finish()?;
        Ok(TimeOrder {
            order,
            targets,
            bytes,
        })
    }

    /// Returns the number of pieces. A worker writes one at a time.
    pub(crate) fn pieces(&self) -> usize {
        self.order.len().div_ceil(PIECE)
    }

    /// Returns the share of a piece in the length of all chunks.
    pub(crate) fn piece_bytes(&self, number: usize) -> u64 {
        let (pieces, bytes) = (self.pieces() as u128, u128::from(self.bytes));
        let until = |piece: usize| bytes * piece as u128 / pieces.max(1);
        u64::try_from(until(number + 1) - until(number)).unwrap_or(0)
    }

    /// Returns the events of one piece.
    pub(super) fn piece(&self, number: usize) -> &[OrderedEvent] {
        let rest = &self.order[number * PIECE..];
        &rest[..rest.len().min(PIECE)]
    }
}

pub(super) fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Targets of events, by number.
pub(super) struct Targets<'a> {
    pub(super) list: Vec<&'a Target>,
    /// Number of each thread's target, for each recording.
    pub(super) by_thread: Vec<HashMap<(i64, i64), u32>>,
    /// Number of the first extra lane.
    pub(super) first_lane: u32,
}

impl<'a> Targets<'a> {
    pub(super) fn new(job: &Job<'a>) -> Targets<'a> {
        let mut list = Vec::new();
        let mut numbers = 0..;
        let mut number_target = |(thread, target): (&(i64, i64), &'a Target)| {
            list.push(target);
            (*thread, numbers.next().unwrap_or(u32::MAX))
        };
        let recording_targets = |targets: &'a HashMap<(i64, i64), Target>| {
            targets.iter().map(&mut number_target).collect()
        };
        let by_thread = job.plan.targets.iter().map(recording_targets).collect();
        let first_lane = u32::try_from(list.len()).unwrap_or(u32::MAX);
        list.extend(&job.extra_lanes.targets);
        Targets {
            list,
            by_thread,
            first_lane,
        }
    }
}

/// Bit in a target's number: the event crosses an edge of the window.
const CUT: u32 = 1 << 31;
/// Bit in a target's number: the event is a begin that is written as a complete span.
const WHOLE: u32 = 1 << 30;

/// An event of the trace. Events with the same time keep the order that they have in an unsorted
/// trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderedEvent {
    /// Time in the trace in ns; metadata comes first.
    pub(super) ts_ns: i64,
    /// Chunk of the event, and its number there.
    pub(super) at: EventRef,
    /// Offset of its line in the chunk's source.
    pub(super) start: u64,
    pub(super) len: u32,
    /// Number of the target, combined with the bits [`CUT`] and [`WHOLE`].
    pub(super) target: u32,
}

impl OrderedEvent {
    /// Combines the number of a target with the bits for an event that crosses an edge of the
    /// window, and for a begin that is written as a complete span.
    pub(super) fn marked_target(target: u32, is_cut: bool, is_whole: bool) -> u32 {
        target | (u32::from(is_cut) * CUT) | (u32::from(is_whole) * WHOLE)
    }

    pub(super) fn is_whole(&self) -> bool {
        self.target & WHOLE != 0
    }

    pub(super) fn is_cut(&self) -> bool {
        self.target & CUT != 0
    }

    /// Returns the number of the target.
    pub(super) fn target(&self) -> u32 {
        self.target & !(CUT | WHOLE)
    }
}

impl Record for OrderedEvent {}
