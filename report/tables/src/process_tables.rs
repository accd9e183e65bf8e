//! The tables of one process, from its events in the order of time.

use crate::flow::{FlowPoint, Step};
use crate::gather::chunk_rows::is_async;
use crate::gather::entry::Entry;
use crate::gather::item::{Act, Item, NO_END, Sample};
use crate::gather::texts::TextPair;
use crate::ids::in_process;
use crate::nest::async_tracks::{AsyncTracks, Turn};
use crate::nest::stack::{MOST, Stack};
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

/// Counts of what the tables lack because there is no room for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Slices in which no other lies, because too many are open.
    pub(crate) spans_too_deep: u64,
    /// Ends of arrows that wait for a slice, of which there are too many.
    pub(crate) flow_ends: u64,
}

impl Sum for LeftOut {
    fn sum<I: Iterator<Item = LeftOut>>(all: I) -> LeftOut {
        all.fold(LeftOut::default(), |sum, of| LeftOut {
            spans_too_deep: sum.spans_too_deep + of.spans_too_deep,
            flow_ends: sum.flow_ends + of.flow_ends,
        })
    }
}

/// Slices on all stacks of a process, and ends of arrows that wait.
const MOST_OPEN: usize = 1 << 20;
const MOST_PENDING: usize = 1 << 20;

/// A track of the process.
#[derive(Clone, Debug)]
pub(crate) struct TrackRow {
    pub(crate) id: i64,
    pub(crate) name: Option<ByteArray>,
    /// The kind of track: `thread`, `async`, `counter`, `process` (instants of a process), or `global` (instants of the whole trace).
    pub(crate) kind: &'static str,
    /// The row of a thread, by its number.
    pub(crate) row: Option<u32>,
}

/// What all processes share.
pub(crate) struct Shared {
    pub(crate) names: Vec<TextPair>,
    pub(crate) counters: Vec<TextPair>,
    pub(crate) log: Spilled<u8>,
}

impl Shared {
    /// Returns the entry at a place of the log.
    fn entry(&self, at: u64) -> Entry<'_> {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        Entry::read(self.log.rest(at))
    }
}

/// Key of a track that belongs to no thread: its kind, and a number that is unique within the kind.
type OtherTrack = (&'static str, u64);

/// Writes the tables of a process.
pub(crate) struct ProcessTables<'f, 'a> {
    shared: &'a Shared,
    upid: i64,
    next_id: i64,
    next_sample: i64,
    files: &'f mut ProcessFiles<'a>,
    /// Arrows that end in the next slice of a track.
    pending: HashMap<usize, Vec<u64>>,
    pending_count: usize,
    /// The tracks of threads, by row from the process's first one on.
    thread_tracks: Vec<Option<usize>>,
    first_row: u32,
    other_tracks: HashMap<OtherTrack, usize>,
    async_tracks: AsyncTracks,
    tracks: Vec<TrackRow>,
    /// The slices of each track.
    stacks: Vec<Stack>,
    /// How many there are on all stacks.
    open: usize,
    left_out: LeftOut,
    /// Where the args of ends are, by when their slices begin and how long they take.
    end_args: HashMap<(i64, i64), u64>,
    end_args_ns: i64,
    points: Vec<FlowPoint>,
}

/// The tables of a process by file.
pub(crate) struct ProcessFiles<'a> {
    pub(crate) slices: SliceTable<'a>,
    pub(crate) args: ArgTable<'a>,
    pub(crate) samples: Table,
}

impl<'f, 'a> ProcessTables<'f, 'a> {
    /// Those of a process whose slices and samples have the ids from these on.
    pub(crate) fn new(
        shared: &'a Shared,
        files: &'f mut ProcessFiles<'a>,
        upid: i64,
        first_row: u32,
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
            first_row,
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

    /// Takes the next event.
    pub(crate) fn take(&mut self, item: &Item) -> Result<()> {
        let entry = self.shared.entry(item.at);
        match item.act {
            Act::EndArgs => self.keep_end_args(item, &entry),
            Act::End => {
                let track = self.thread_track(item.row);
                // It stands before its begin, which knows that it takes no time.
                if item.dur_ns != 0 {
                    self.end(track, item);
                }
            }
            Act::AsyncEnd => {
                let track = self.async_track(item, &entry, Turn::End);
                self.end(track, item);
            }
            Act::FlowOut | Act::FlowStep | Act::FlowIn => {
                let track = self.thread_track(item.row);
                let step = match item.act {
                    Act::FlowOut => Step::Start,
                    Act::FlowStep => Step::Through,
                    _ => Step::End,
                };
                let slice = self.stacks[track].top();
                let point = slice.map(|slice| point(item, entry.id, step, slice));
                self.points.extend(point);
            }
            Act::FlowInNext => {
                let track = self.thread_track(item.row);
                if self.pending_count < MOST_PENDING {
                    self.pending_count += 1;
                    self.pending.entry(track).or_default().push(entry.id);
                } else {
                    self.left_out.flow_ends += 1;
                }
            }
            _ => self.slice(item, &entry)?,
        }
        Ok(())
    }

    /// Takes the points of arrows that were found.
    pub(crate) fn take_points(&mut self) -> std::vec::Drain<'_, FlowPoint> {
        self.points.drain(..)
    }

    fn end(&mut self, track: usize, item: &Item) {
        let start_ns = (item.dur_ns != NO_END).then(|| item.ts_ns - item.dur_ns);
        let stack = &mut self.stacks[track];
        let before = stack.len();
        stack.end(item.ts_ns, start_ns);
        self.open -= before - stack.len();
    }

    fn slice(&mut self, item: &Item, entry: &Entry<'_>) -> Result<()> {
        let track = match item.act {
            Act::ProcessInstant => self.other_track(("process", 0), None),
            Act::GlobalInstant => self.other_track(("global", 0), None),
            act if is_async(act) => {
                let turn = match act {
                    Act::AsyncBegin => Turn::Begin,
                    _ => Turn::Stay,
                };
                self.async_track(item, entry, turn)
            }
            _ => self.thread_track(item.row),
        };
        let id = self.next_id;
        self.next_id += 1;
        let has_end = matches!(item.act, Act::Begin | Act::AsyncBegin);
        let is_open = has_end && !(item.act == Act::Begin && item.dur_ns == 0);
        let dur_ns = (!is_open).then_some(item.dur_ns);
        let stack = &mut self.stacks[track];
        let others = self.open - stack.len();
        let most = MOST.min(MOST_OPEN.saturating_sub(others));
        let place = stack.begin(id, item.ts_ns, dur_ns, most);
        self.open = others + stack.len();
        self.left_out.spans_too_deep += u64::from(place.is_left_out);
        if !self.pending.is_empty() {
            self.end_pending(track, item, id);
        }
        let at = has_end.then(|| self.end_args_of(item, track_key(item, entry)));
        let later = at.flatten().map(|at| self.shared.entry(at));
        let has_args = entry.has_args() || later.is_some();
        if has_args {
            self.files.args.push(id, entry, later.as_ref())?;
        }
        self.files.slices.push(&SliceRow {
            id,
            ts_ns: item.ts_ns,
            dur_ns: item.dur_ns,
            track: self.tracks[track].id,
            name: item.name,
            here: entry.name.clone(),
            depth: place.depth,
            parent: place.parent,
            has_args,
            cpu_ns: entry.cpu_ns,
        })
    }

    /// Ends the arrows that waited for a slice of the track.
    fn end_pending(&mut self, track: usize, item: &Item, slice: i64) {
        let arrows = self.pending.remove(&track).unwrap_or_default();
        self.pending_count -= arrows.len();
        let slice = (slice, item.ts_ns);
        let ends = arrows.into_iter();
        self.points
            .extend(ends.map(|arrow| point(item, arrow, Step::End, slice)));
    }

    /// Keeps the args of an end until its begin comes, which has the same time.
    fn keep_end_args(&mut self, item: &Item, entry: &Entry<'_>) {
        if !entry.has_args() {
            return;
        }
        if self.end_args_ns != item.ts_ns {
            self.end_args.clear();
            self.end_args_ns = item.ts_ns;
        }
        self.end_args
            .insert((track_key(item, entry), item.dur_ns), item.at);
    }

    fn end_args_of(&mut self, item: &Item, track: i64) -> Option<u64> {
        if self.end_args.is_empty() || self.end_args_ns != item.ts_ns {
            return None;
        }
        self.end_args.remove(&(track, item.dur_ns))
    }

    /// Takes the next sample.
    pub(crate) fn take_sample(&mut self, sample: &Sample) -> Result<()> {
        let kept = self.shared.counters.get(sample.counter as usize).cloned();
        let pair = kept.or_else(|| self.shared.entry(sample.at).name);
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

    fn thread_track(&mut self, row: u32) -> usize {
        let at = row.saturating_sub(self.first_row) as usize;
        if let Some(Some(track)) = self.thread_tracks.get(at) {
            return *track;
        }
        let track = self.add_track(None, "thread", Some(row));
        if at >= self.thread_tracks.len() {
            self.thread_tracks.resize(at + 1, None);
        }
        self.thread_tracks[at] = Some(track);
        track
    }

    fn async_track(&mut self, item: &Item, entry: &Entry<'_>, turn: Turn) -> usize {
        let pair = self.shared.names.get(item.name as usize);
        let name = pair.or(entry.name.as_ref()).map(|pair| pair.1.clone());
        let hash = name.as_ref().map_or(0, |name| xxh3_64(name.data()));
        let number = self.async_tracks.at(entry.id, hash, turn);
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
        row: Option<u32>,
    ) -> usize {
        let number = self.tracks.len();
        let id = in_process(self.upid, number);
        self.tracks.push(TrackRow {
            id,
            name,
            kind,
            row,
        });
        self.stacks.push(Stack::default());
        number
    }

    /// Writes what is left; the tracks, and what was left out.
    pub(crate) fn finish(self) -> Result<(Vec<TrackRow>, LeftOut)> {
        self.files.slices.finish()?;
        self.files.args.finish()?;
        self.files.samples.finish()?;
        Ok((self.tracks, self.left_out))
    }
}

/// Returns the point of an arrow at a slice, which is given by its id and its begin.
fn point(item: &Item, arrow: u64, step: Step, (slice, slice_ns): (i64, i64)) -> FlowPoint {
    FlowPoint {
        arrow,
        ts_ns: item.ts_ns,
        rank: item.rank(),
        at: item.at,
        step,
        slice,
        slice_ns,
    }
}

/// What an end has in common with its begin, beside their times.
fn track_key(item: &Item, entry: &Entry<'_>) -> i64 {
    match is_async(item.act) || item.row == crate::gather::item::NO_ROW {
        true => entry.id.cast_signed() | i64::MIN,
        false => item.row.into(),
    }
}
