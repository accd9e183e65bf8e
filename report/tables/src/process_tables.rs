//! Writes the tables of one process from its events in the order of time.

use crate::flow::{FlowPoint, Step};
use crate::gather::chunk_records::is_async;
use crate::gather::entry::Entry;
use crate::gather::event_record::{EventKind, EventRecord, NO_END, Sample};
use crate::gather::texts::TextPair;
use crate::ids::in_process;
use crate::nest::async_tracks::{AsyncTracks, Change};
use crate::nest::stack::{MAX_SLICES, Stack};
use crate::write::arg_table::ArgTable;
use crate::write::cells::Cell;
use crate::write::slice_table::{SliceRow, SliceTable};
use crate::write::table::Table;
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use std::collections::HashMap;
use std::iter::Sum;
use trace_store::spill_vec::Spilled;
use xxhash_rust::xxh3::xxh3_64;

/// Counts of data that the tables lack because of limits on memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Number of slices that contain no others, because too many slices were open.
    pub(crate) spans_too_deep: u64,
    /// Number of ends of arrows that were dropped, because too many others were waiting for a slice.
    pub(crate) flow_ends: u64,
}

impl Sum for LeftOut {
    fn sum<I: Iterator<Item = LeftOut>>(all: I) -> LeftOut {
        all.fold(LeftOut::default(), |sum, one| LeftOut {
            spans_too_deep: sum.spans_too_deep + one.spans_too_deep,
            flow_ends: sum.flow_ends + one.flow_ends,
        })
    }
}

/// Maximum number of slices on all stacks of a process.
const MAX_OPEN: usize = 1 << 20;
/// Maximum number of ends of arrows that wait for a slice.
const MAX_PENDING: usize = 1 << 20;

/// A track of the process.
#[derive(Clone, Debug)]
pub(crate) struct TrackRow {
    pub(crate) id: i64,
    pub(crate) name: Option<ByteArray>,
    /// Kind of the track: `thread`, `async`, `counter`, `process` (instants of a process), or `global` (instants of the whole trace).
    pub(crate) kind: &'static str,
    /// Number of the thread's lane.
    pub(crate) lane: Option<u32>,
}

/// Data that all processes share.
pub(crate) struct Shared {
    pub(crate) names: Vec<TextPair>,
    pub(crate) counters: Vec<TextPair>,
    pub(crate) log: Spilled<u8>,
}

impl Shared {
    /// Returns the entry at an offset in the log.
    fn entry(&self, at: u64) -> Entry<'_> {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        Entry::read(self.log.rest(at))
    }
}

/// Key of a track that belongs to no thread: its kind, and a number that is unique within the kind.
type OtherTrack = (&'static str, u64);

/// The tables of a process that is being written.
pub(crate) struct ProcessTables<'f, 'a> {
    shared: &'a Shared,
    upid: i64,
    next_id: i64,
    next_sample: i64,
    files: &'f mut ProcessFiles<'a>,
    /// Arrows that end in the next slice of each track.
    pending: HashMap<usize, Vec<u64>>,
    pending_count: usize,
    /// Tracks of threads, by lane relative to the first lane of the process.
    thread_tracks: Vec<Option<usize>>,
    first_lane: u32,
    other_tracks: HashMap<OtherTrack, usize>,
    async_tracks: AsyncTracks,
    tracks: Vec<TrackRow>,
    /// Stack of slices of each track.
    stacks: Vec<Stack>,
    /// Number of slices on all stacks.
    open: usize,
    left_out: LeftOut,
    /// Offsets of the args of ends in the log, by the track and the duration of their slices.
    end_args: HashMap<(i64, i64), u64>,
    /// Begin of these slices.
    end_args_ns: i64,
    points: Vec<FlowPoint>,
}

/// Files for the tables of one process after another.
pub(crate) struct ProcessFiles<'a> {
    pub(crate) slices: SliceTable<'a>,
    pub(crate) args: ArgTable<'a>,
    pub(crate) samples: Table,
}

impl<'f, 'a> ProcessTables<'f, 'a> {
    /// Begins the tables of a process. `next_id` and `next_sample` are the ids of its first slice and sample.
    pub(crate) fn new(
        shared: &'a Shared,
        files: &'f mut ProcessFiles<'a>,
        upid: i64,
        first_lane: u32,
        (next_id, next_sample): (i64, i64),
    ) -> ProcessTables<'f, 'a> {
        ProcessTables {
            shared,
            upid,
            next_id,
            next_sample,
            files,
            pending: HashMap::new(),
            pending_count: 0,
            thread_tracks: Vec::new(),
            first_lane,
            other_tracks: HashMap::new(),
            async_tracks: AsyncTracks::default(),
            tracks: Vec::new(),
            stacks: Vec::new(),
            open: 0,
            left_out: LeftOut::default(),
            end_args: HashMap::new(),
            end_args_ns: 0,
            points: Vec::new(),
        }
    }

    /// Adds the next event.
    pub(crate) fn add_event(&mut self, event: &EventRecord) -> Result<()> {
        let entry = self.shared.entry(event.at);
        match event.kind {
            EventKind::EndArgs => self.store_end_args(event, &entry),
            EventKind::End => {
                let track = self.thread_track(event.lane);
                // The end of a slice of length 0 is sorted before its begin. The begin is added with its duration, so nothing is left to end.
                if event.dur_ns != 0 {
                    self.end_slice(track, event);
                }
            }
            EventKind::AsyncEnd => {
                let track = self.async_track(event, &entry, Change::End);
                self.end_slice(track, event);
            }
            EventKind::FlowOut | EventKind::FlowStep | EventKind::FlowIn => {
                let track = self.thread_track(event.lane);
                let step = match event.kind {
                    EventKind::FlowOut => Step::Start,
                    EventKind::FlowStep => Step::Through,
                    _ => Step::End,
                };
                let slice = self.stacks[track].top();
                let point = slice.map(|slice| flow_point(event, entry.id, step, slice));
                self.points.extend(point);
            }
            EventKind::FlowInNext => {
                let track = self.thread_track(event.lane);
                if self.pending_count < MAX_PENDING {
                    self.pending_count += 1;
                    self.pending.entry(track).or_default().push(entry.id);
                } else {
                    self.left_out.flow_ends += 1;
                }
            }
            _ => self.add_slice(event, &entry)?,
        }
        Ok(())
    }

    /// Removes and returns the points of arrows that were found.
    pub(crate) fn drain_points(&mut self) -> std::vec::Drain<'_, FlowPoint> {
        self.points.drain(..)
    }

    fn end_slice(&mut self, track: usize, event: &EventRecord) {
        let start_ns = (event.dur_ns != NO_END).then(|| event.ts_ns - event.dur_ns);
        let stack = &mut self.stacks[track];
        let before = stack.len();
        stack.end(event.ts_ns, start_ns);
        self.open -= before - stack.len();
    }

    fn add_slice(&mut self, event: &EventRecord, entry: &Entry<'_>) -> Result<()> {
        let track = match event.kind {
            EventKind::ProcessInstant => self.other_track(("process", 0), None),
            EventKind::GlobalInstant => self.other_track(("global", 0), None),
            kind if is_async(kind) => {
                let change = match kind {
                    EventKind::AsyncBegin => Change::Begin,
                    _ => Change::None,
                };
                self.async_track(event, entry, change)
            }
            _ => self.thread_track(event.lane),
        };
        let id = self.next_id;
        self.next_id += 1;
        let has_end = matches!(event.kind, EventKind::Begin | EventKind::AsyncBegin);
        let is_open = has_end && !(event.kind == EventKind::Begin && event.dur_ns == 0);
        let dur_ns = (!is_open).then_some(event.dur_ns);
        let stack = &mut self.stacks[track];
        let others = self.open - stack.len();
        let most = MAX_SLICES.min(MAX_OPEN.saturating_sub(others));
        let position = stack.begin(id, event.ts_ns, dur_ns, most);
        self.open = others + stack.len();
        self.left_out.spans_too_deep += u64::from(position.is_left_out);
        if !self.pending.is_empty() {
            self.end_pending(track, event, id);
        }
        let at = has_end.then(|| self.remove_end_args(event, track_key(event, entry)));
        let later = at.flatten().map(|at| self.shared.entry(at));
        let has_args = entry.has_args() || later.is_some();
        if has_args {
            self.files.args.push(id, entry, later.as_ref())?;
        }
        self.files.slices.push(&SliceRow {
            id,
            ts_ns: event.ts_ns,
            dur_ns: event.dur_ns,
            track: self.tracks[track].id,
            name: event.name,
            inline_name: entry.name.clone(),
            depth: position.depth,
            parent: position.parent,
            has_args,
            cpu_ns: entry.cpu_ns,
        })
    }

    /// Ends the arrows that were waiting for a slice of the track.
    fn end_pending(&mut self, track: usize, event: &EventRecord, slice: i64) {
        let arrows = self.pending.remove(&track).unwrap_or_default();
        self.pending_count -= arrows.len();
        let slice = (slice, event.ts_ns);
        let ends = arrows.into_iter();
        self.points
            .extend(ends.map(|arrow| flow_point(event, arrow, Step::End, slice)));
    }

    /// Stores the args of an end for its begin. The begin follows soon, because both records have the same time.
    fn store_end_args(&mut self, event: &EventRecord, entry: &Entry<'_>) {
        if !entry.has_args() {
            return;
        }
        if self.end_args_ns != event.ts_ns {
            self.end_args.clear();
            self.end_args_ns = event.ts_ns;
        }
        self.end_args
            .insert((track_key(event, entry), event.dur_ns), event.at);
    }

    fn remove_end_args(&mut self, event: &EventRecord, track: i64) -> Option<u64> {
        if self.end_args.is_empty() || self.end_args_ns != event.ts_ns {
            return None;
        }
        self.end_args.remove(&(track, event.dur_ns))
    }

    /// Adds a row for the next value of a counter to the table of samples. Creates the counter's
    /// track if this is its first value.
    pub(crate) fn add_sample(&mut self, sample: &Sample) -> Result<()> {
        let stored = self.shared.counters.get(sample.counter as usize).cloned();
        let pair = stored.or_else(|| self.shared.entry(sample.at).name);
        let name = pair.map(|pair| pair.1);
        let hash = name.as_ref().map_or(0, |name| xxh3_64(name.data()));
        let track = self.other_track(("counter", hash), name);
        let id = self.next_sample;
        self.next_sample += 1;
        let track = self.tracks[track].id;
        let [id, ts, track] = [id, sample.ts_ns, track].map(Cell::Long);
        let value = Cell::Double(f64::from_bits(sample.bits));
        self.files.samples.push([id, ts, track, value])
    }

    fn thread_track(&mut self, lane: u32) -> usize {
        let at = lane.saturating_sub(self.first_lane) as usize;
        if let Some(Some(track)) = self.thread_tracks.get(at) {
            return *track;
        }
        let track = self.add_track(None, "thread", Some(lane));
        if at >= self.thread_tracks.len() {
            self.thread_tracks.resize(at + 1, None);
        }
        self.thread_tracks[at] = Some(track);
        track
    }

    fn async_track(&mut self, event: &EventRecord, entry: &Entry<'_>, change: Change) -> usize {
        let pair = self.shared.names.get(event.name as usize);
        let name = pair.or(entry.name.as_ref()).map(|pair| pair.1.clone());
        let hash = name.as_ref().map_or(0, |name| xxh3_64(name.data()));
        let number = self.async_tracks.track(entry.id, hash, change);
        self.other_track(("async", number as u64), name)
    }

    fn other_track(&mut self, other: OtherTrack, name: Option<ByteArray>) -> usize {
        if let Some(track) = self.other_tracks.get(&other) {
            return *track;
        }
        let track = self.add_track(name, other.0, None);
        self.other_tracks.insert(other, track);
        track
    }

    fn add_track(
        &mut self,
        name: Option<ByteArray>,
        kind: &'static str,
        lane: Option<u32>,
    ) -> usize {
        let number = self.tracks.len();
        let id = in_process(self.upid, number);
        self.tracks.push(TrackRow {
            id,
            name,
            kind,
            lane,
        });
        self.stacks.push(Stack::default());
        number
    }

    /// Writes the remaining rows. Returns the tracks, and the counts of missing data.
    pub(crate) fn finish(self) -> Result<(Vec<TrackRow>, LeftOut)> {
        self.files.slices.finish()?;
        self.files.args.finish()?;
        self.files.samples.finish()?;
        Ok((self.tracks, self.left_out))
    }
}

/// Creates the point of an arrow at a slice, which is given by its id and its begin.
fn flow_point(
    event: &EventRecord,
    arrow: u64,
    step: Step,
    (slice, slice_ns): (i64, i64),
) -> FlowPoint {
    FlowPoint {
        arrow,
        ts_ns: event.ts_ns,
        rank: event.rank(),
        at: event.at,
        step,
        slice,
        slice_ns,
    }
}

/// Returns a key of the track, which is the same for the begin and the end of a slice.
fn track_key(event: &EventRecord, entry: &Entry<'_>) -> i64 {
    match is_async(event.kind) || event.lane == crate::gather::event_record::NO_LANE {
        true => entry.id.cast_signed() | i64::MIN,
        false => event.lane.into(),
    }
}
