//! Assigns spans to lanes, one thread after the other, for threads whose spans may overlap. A lane
//! is one line of a thread in viewers, on which all spans must nest.

use crate::event::patch::Target;
use crate::identity::plan::Plan;
use crate::identity::process::Process;
use crate::lanes::lane_stacks::LaneStacks;
use crate::lanes::move_finder::MovedRange;
use crate::pass::chunk::{EventRecord, EventRef};
use crate::pass::history::Histories;
use crate::span::lane_events::{ArgsPosition, LaneEvent, LaneEventKind};
use crate::store::sorter::{Record, Sorter};
use crate::summary::chunk_summary::{ChunkSummary, RecordedThread};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::iter::Peekable;
use std::path::Path;
use std::slice::Iter;

/// Maximum number of ends of flows that wait for the next span. Further ones of the thread do not
/// move.
const MAX_WAITING: usize = 1 << 16;

/// Numbers of spans that overlap others of their thread without nesting, so that viewers would drop
/// them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RowTotals {
    /// Number of spans on lanes next to their thread. It includes spans in them that do not
    /// overlap.
    pub overlapping_spans: u64,
    /// Number of lanes that were added.
    #[serde(rename = "rows_added")]
    pub added: usize,
    /// Number of spans that stay on their thread, because they overlap more spans at once than a
    /// thread may have lanes. Viewers drop them.
    pub overlapping_spans_left: u64,
    /// Error of the temporary files that left all spans on their threads, although some may
    /// overlap.
    #[serde(rename = "rows_failed", skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// Assigns the spans of threads to as many lanes as they need, one thread after the other.
pub(crate) struct LaneAssignment<'a> {
    pub(crate) moves: Sorter<'a, Move>,
    /// Thread of each lane that was added.
    pub(crate) added: Vec<u32>,
    pub(crate) totals: RowTotals,
    current: u32,
    lanes: LaneStacks,
    /// Number of lanes that were added for earlier threads.
    before: usize,
    waiting: Vec<EventRef>,
    /// Spans that leave their thread's own lane.
    moved: Peekable<Iter<'a, MovedRange>>,
    /// Maximum end of the ranges so far.
    moved_end: u64,
    /// Number of the next span.
    next_span: u64,
}

impl<'a> LaneAssignment<'a> {
    pub(crate) fn new(folder: &'a Path, moved: &'a [MovedRange]) -> LaneAssignment<'a> {
        LaneAssignment {
            moves: Sorter::new(folder),
            added: Vec::new(),
            totals: RowTotals::default(),
            current: 0,
            lanes: LaneStacks::default(),
            before: 0,
            waiting: Vec::new(),
            moved: moved.iter().peekable(),
            moved_end: 0,
            next_span: 0,
        }
    }

    pub(crate) fn add(&mut self, event: LaneEvent) -> io::Result<()> {
        if event.thread != self.current {
            (self.current, self.before) = (event.thread, self.added.len());
            self.lanes = LaneStacks::default();
            self.waiting.clear();
        }
        match event.kind {
            LaneEventKind::Complete | LaneEventKind::Begin => self.add_span(&event),
            LaneEventKind::Next if self.waiting.len() < MAX_WAITING => {
                self.waiting.push(event.at);
                Ok(())
            }
            LaneEventKind::Next => Ok(()),
            LaneEventKind::Point => {
                let lane = self.lanes.lane_at(event.start);
                self.move_event(event.at, lane)
            }
        }
    }

    fn add_span(&mut self, event: &LaneEvent) -> io::Result<()> {
        let moves = self.next_span_moves();
        let lane = self.lanes.add_span((event.start, event.end), moves);
        self.totals.overlapping_spans_left += u64::from(lane.is_none());
        let lane = lane.unwrap_or(0);
        self.totals.overlapping_spans += u64::from(lane > 0);
        while self.before + lane > self.added.len() {
            self.added.push(self.current);
        }
        match (event.end_at, event.kind) {
            (Some(end), LaneEventKind::Complete) => {
                let lane = self.added_lane(lane)?;
                self.moves.push(Move {
                    end_args: event.end_args,
                    ..Move::new(event.at, lane, Form::Whole)
                })?;
                self.moves.push(Move::new(end, lane, Form::Omitted))?;
            }
            (end, _) => {
                let mut both = [event.at].into_iter().chain(end);
                both.try_for_each(|at| self.move_event(at, lane))?;
            }
        }
        let waiting = std::mem::take(&mut self.waiting);
        waiting
            .into_iter()
            .try_for_each(|at| self.move_event(at, lane))
    }

    /// Returns true if the next span leaves its thread's own lane.
    fn next_span_moves(&mut self) -> bool {
        let number = self.next_span;
        self.next_span += 1;
        while let Some(range) = self.moved.next_if(|range| range.first <= number) {
            self.moved_end = self.moved_end.max(range.end);
        }
        number < self.moved_end
    }

    fn move_event(&mut self, at: EventRef, lane: usize) -> io::Result<()> {
        match self.added_lane(lane)? {
            None => Ok(()),
            lane => self.moves.push(Move::new(at, lane, Form::Recorded)),
        }
    }

    /// Returns the number of a lane of this thread among all added lanes, or `None` for the
    /// thread's own lane.
    fn added_lane(&self, lane: usize) -> io::Result<Option<u32>> {
        let added = |lane: usize| u32::try_from(self.before + lane).map_err(io::Error::other);
        lane.checked_sub(1).map(added).transpose()
    }
}

/// Assigns tids to the added lanes, and adds them to the processes. They are the lowest numbers
/// that are free in their process.
pub(crate) fn assign_targets(
    added: &[u32],
    candidates: &[LaneCandidate],
    processes: &mut [Process],
) -> Vec<Target> {
    let target = |candidate: &u32| candidates[*candidate as usize].target.clone();
    let mut targets: Vec<Target> = added.iter().map(target).collect();
    let mut by_process: HashMap<u32, Vec<usize>> = HashMap::new();
    for (number, target) in targets.iter().enumerate() {
        let lanes = by_process.entry(target.pid.number());
        lanes.or_default().push(number);
    }
    for process in processes {
        let Some(lanes) = by_process.get(&process.output_pid) else {
            continue;
        };
        let free = free_ids(process, lanes.len());
        // Indexed by tid, because there may be many lanes and many threads.
        let threads = process.threads.values_mut();
        let threads = threads.map(|thread| (thread.output_tid, thread));
        let mut threads: HashMap<u32, _> = threads.collect();
        for (lane, free) in lanes.iter().zip(free) {
            let tid = &mut targets[*lane].tid;
            if let Some(thread) = threads.get_mut(&tid.number()) {
                thread.lane_tids.push(free);
                *tid = free.into();
            }
        }
    }
    targets
}

fn free_ids(process: &Process, count: usize) -> Vec<u32> {
    let tids = process.threads.values().map(|thread| thread.output_tid);
    let taken: BTreeSet<u32> = tids.chain([process.output_pid]).collect();
    let is_free = |tid: &u32| !taken.contains(tid);
    (1..=u32::MAX).filter(is_free).take(count).collect()
}

/// Number that means a thread's own lane.
const OWN_LANE: u32 = u32::MAX;

/// Form in which an event is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// The event as it was recorded.
    #[default]
    Recorded,
    /// A begin (`B`) becomes a complete span (`X`) of length 0, because a viewer would process the
    /// end first.
    Whole,
    /// The end of such a span is not written.
    Omitted,
}

/// An event that moves to another lane or changes its form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Move {
    pub(crate) at: EventRef,
    lane: u32,
    pub(crate) form: Form,
    /// Position of the args of the end of a span that becomes a complete one.
    pub(crate) end_args: ArgsPosition,
}

impl Move {
    /// Creates a move to an added lane. With `None`, the event stays on its thread's own lane.
    pub(crate) fn new(at: EventRef, lane: Option<u32>, form: Form) -> Move {
        Move {
            at,
            lane: lane.unwrap_or(OWN_LANE),
            form,
            end_args: ArgsPosition::default(),
        }
    }

    /// Returns the number of the lane to which the event moves.
    pub(crate) fn lane(&self) -> Option<u32> {
        (self.lane != OWN_LANE).then_some(self.lane)
    }
}

impl EventRecord for Move {
    fn event(&self) -> EventRef {
        self.at
    }
}

impl Record for Move {}

/// A track of the trace on which spans may overlap, and the threads that are shown on it.
pub(crate) struct LaneCandidate {
    pub(crate) target: Target,
    pub(crate) threads: Vec<RecordedThread>,
}

/// Returns the tracks on which spans may overlap, in a fixed order.
pub(crate) fn lane_candidates(
    summaries: &[ChunkSummary],
    histories: Histories,
    plan: &Plan,
    shifts_ns: &[i64],
) -> Vec<LaneCandidate> {
    let overlaps = histories.into_overlaps();
    if overlaps.is_empty() {
        return Vec::new(); // verbatim mode, or no spans
    }
    let mut tracks: BTreeMap<(&[u8], &[u8]), LaneCandidate> = BTreeMap::new();
    for (recording, targets) in plan.targets.iter().enumerate() {
        for (thread, target) in targets {
            let track = tracks.entry((&target.pid, &target.tid));
            let track = track.or_insert_with(|| LaneCandidate {
                target: target.clone(),
                threads: Vec::new(),
            });
            track.threads.push((recording, *thread));
        }
    }
    let may_overlap = |track: &LaneCandidate| {
        let has_spans = |thread: &&RecordedThread| overlaps.contains_key(*thread);
        let with_spans: Vec<&RecordedThread> = track.threads.iter().filter(has_spans).collect();
        with_spans.iter().any(|thread| overlaps[*thread])
            || events_overlap(&with_spans, summaries, shifts_ns)
    };
    tracks.into_values().filter(may_overlap).collect()
}

/// Returns true if some of the threads that are shown on one track have events at the same time.
/// All events count, because this is rare, and because the range of a thread does not include its
/// unfinished spans.
fn events_overlap(
    threads: &[&RecordedThread],
    summaries: &[ChunkSummary],
    shifts_ns: &[i64],
) -> bool {
    let range = |thread: &&RecordedThread| {
        let activity = summaries[thread.0].threads.get(&thread.1)?;
        let activity = activity.shifted(shifts_ns[thread.0]);
        Some((activity.first_ns, activity.last_ns))
    };
    let mut ranges: Vec<(i64, i64)> = threads.iter().filter_map(range).collect();
    ranges.sort_unstable();
    ranges.windows(2).any(|two| two[0].1 >= two[1].0)
}
