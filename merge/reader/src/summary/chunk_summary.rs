//! Summary of a chunk of lines: everything that the second pass and the report need before the first byte is written.

use crate::align::{self, Curve, Reading, drop_disordered};
use crate::event::damage::Places;
use crate::event::loss::Losses;
use crate::event::mend::Repairs;
use crate::foreign::display_hints::DisplayHints;
use crate::fragment::assembly::StreamKey;
use crate::fragment::exit::Exit;
use crate::summary::nesting::Nesting;
use sa_format::control::Switch;
use sa_format::{Anchor, Phase, TrackRecord, Visibility};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Maximum number of anchors that are kept for a recording. Up to 40 minutes, this is all of them.
const MOST_ANCHORS: usize = 512;

/// Number of events and time range of a thread. Times in ns are as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Number of events.
    pub events: u64,
    /// Begin of the first event; the largest time if no event has a time.
    pub first_ns: i64,
    /// End of the last event.
    pub last_ns: i64,
}

impl Default for Activity {
    fn default() -> Self {
        Activity {
            events: 0,
            first_ns: i64::MAX,
            last_ns: i64::MIN,
        }
    }
}

impl Activity {
    /// Adds the event count of another part of the thread's lines and extends the time range by its range.
    pub fn add(&mut self, other: &Activity) {
        self.events += other.events;
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
    }

    /// Extends the time range so that it covers an event. Does not change `events`; the caller counts the event.
    #[inline(always)]
    pub fn see(&mut self, ts_ns: i64, dur_ns: i64) {
        self.first_ns = self.first_ns.min(ts_ns);
        self.last_ns = self.last_ns.max(ts_ns + dur_ns);
    }

    /// Returns a copy of the activity with `shift_ns` added to its times, for example to convert recorded times to the axis of the trace.
    pub fn shifted(&self, shift_ns: i64) -> Activity {
        if self.first_ns == i64::MAX {
            return *self;
        }
        Activity {
            first_ns: self.first_ns + shift_ns,
            last_ns: self.last_ns + shift_ns,
            ..*self
        }
    }
}

/// A stream of a recording, and a range of positions in it whose loss a loss record explains.
pub(crate) type Explained = (StreamKey, Range<u64>);

/// Summary of a chunk of lines.
#[derive(Clone, Default)]
pub struct ChunkSummary {
    /// Activity of each thread, by pid and tid.
    pub threads: HashMap<(i64, i64), Activity>,
    /// Nesting of the spans of each thread. Code that joins chunks takes it out before.
    pub nestings: Vec<((i64, i64), Nesting)>,
    /// Number of events by phase.
    pub phases: BTreeMap<Phase, u64>,
    /// Number of objects that are not events, in files where these count.
    pub objects: u64,
    /// True if all lines are in canonical order and verified by a checksum. Not determined for objects and windows.
    pub canonical: bool,
    /// True if there is damage, a block header, a repeated key, or an id after the front of a line. Such lines are scanned carefully in the second
    /// pass, too.
    pub odd: bool,
    /// The last `process_name` of each pid.
    pub process_names: HashMap<i64, String>,
    /// The last `thread_name` of each thread.
    pub thread_names: HashMap<(i64, i64), String>,
    /// Meaning of the tids of tracks.
    pub tracks: HashMap<(i64, i64), TrackRecord>,
    /// DisplayHints of other profilers about their tracks.
    pub hints: DisplayHints,
    /// Calls that the preload library reports it can see, by pid.
    pub visibility: HashMap<i64, Visibility>,
    /// The last switch of the recorder. It is boxed because there may be many chunks and most have none.
    pub switch: Option<Box<Switch>>,
    /// Positions that loss records explain.
    pub explained: Vec<Explained>,
    /// Number of lost events, according to the loss records.
    pub lost_events: u64,
    /// Losses by thread and cause.
    pub losses: Losses,
    /// Number of begins of spans that did not end.
    pub unfinished: u64,
    /// Anchors in the order of the lines. If there are many, only the most certain ones.
    pub anchors: Vec<Anchor>,
    /// True if there is an end record, written by the recorder or a reader.
    pub ended: bool,
    /// True if a snapshot ended the recording while the process was running.
    pub was_running: bool,
    /// Number of spans that were open in the ring, or when a reader settled the ring.
    pub open: Option<u64>,
    /// How the process ended, if the reader that settled its ring knew.
    pub exit: Option<Exit>,
    /// True if the recorder has stopped recording events.
    pub stopped: bool,
    /// Damaged places.
    pub places: Places,
    /// Number of repaired events, by kind.
    pub repairs: Repairs,
}

impl ChunkSummary {
    /// Returns the number of events in the chunk, including JSON objects that are not events in files where these count.
    pub fn events(&self) -> u64 {
        self.phases.values().sum::<u64>() + self.objects
    }

    /// Adds the summary of the next chunk of lines to this one. If both have a value that can only exist once, such as the name of a thread, the
    /// later one wins.
    pub fn append(&mut self, later: ChunkSummary) {
        for (thread, activity) in &later.threads {
            self.threads.entry(*thread).or_default().add(activity);
        }
        for (phase, count) in &later.phases {
            *self.phases.entry(*phase).or_default() += count;
        }
        self.objects += later.objects;
        self.process_names.extend(later.process_names);
        self.thread_names.extend(later.thread_names);
        self.tracks.extend(later.tracks);
        self.hints.append(later.hints);
        self.visibility.extend(later.visibility);
        self.switch = later.switch.or(self.switch.take());
        self.explained.extend(later.explained);
        self.lost_events = self.lost_events.saturating_add(later.lost_events);
        self.losses.append(later.losses);
        self.unfinished += later.unfinished;
        self.anchors.extend(later.anchors);
        thin(&mut self.anchors);
        self.ended |= later.ended;
        self.was_running |= later.was_running;
        self.open = later.open.or(self.open);
        self.exit = later.exit.or(self.exit.take());
        self.stopped |= later.stopped;
        self.places.append(&later.places);
        self.repairs.append(&later.repairs);
    }

    /// Converts the times of the activities and losses with the curve `warp`, which maps recorded ns to corrected ns.
    pub fn warp(&mut self, warp: &Curve) {
        self.losses.warp(|ns| warp.at(ns));
        for activity in self
            .threads
            .values_mut()
            .filter(|one| one.first_ns != i64::MAX)
        {
            activity.first_ns = warp.at(activity.first_ns);
            activity.last_ns = warp.at(activity.last_ns);
        }
    }

    /// Removes the activities of threads and the event counts. Keeps all else: names, tracks, losses, anchors and damage.
    pub fn forget_events(&mut self) {
        self.threads.clear();
        self.phases.clear();
        self.unfinished = 0;
    }

    /// Adds the activities and event counts of another summary, and ignores everything else in it.
    pub fn add_events(&mut self, other: ChunkSummary) {
        self.append(ChunkSummary {
            threads: other.threads,
            phases: other.phases,
            unfinished: other.unfinished,
            ..ChunkSummary::default()
        });
    }

    /// Returns the latest end of an event of the chunk, in ns as recorded; `None` if no event has a time.
    pub fn last_ns(&self) -> Option<i64> {
        let timed = self
            .threads
            .values()
            .filter(|activity| activity.first_ns != i64::MAX);
        timed.map(|activity| activity.last_ns).max()
    }

    /// Returns the begin of the first event and the end of the last one, in ns as recorded; `None` if no event has a time.
    pub fn range_ns(&self) -> Option<(i64, i64)> {
        let firsts = self.threads.values().map(|activity| activity.first_ns);
        let first_ns = firsts.min().filter(|first_ns| *first_ns != i64::MAX)?;
        Some((first_ns, self.last_ns()?))
    }

    /// Returns true if the chunk contains begin or end events that may have a partner elsewhere. Begins of spans that never ended do not count.
    pub fn has_begins_or_ends(&self) -> bool {
        let count = |phase: &Phase| self.phases.get(phase).copied().unwrap_or(0);
        let has_other = |phase: &Phase| phase.is_async() || *phase == Phase::End;
        count(&Phase::Begin) > self.unfinished || self.phases.keys().any(has_other)
    }

    /// Returns true if the chunk contains events that are shown in every time window: metadata, CPU profiles and unfinished spans.
    pub fn has_timeless(&self) -> bool {
        let has = |phase: &Phase| self.phases.contains_key(phase);
        self.unfinished > 0 || has(&Phase::Metadata) || has(&Phase::Sample)
    }
}

/// Drops anchors if there are more than [`MOST_ANCHORS`]. Keeps the most certain ones, spread evenly over the recording.
fn thin(anchors: &mut Vec<Anchor>) {
    if anchors.len() > MOST_ANCHORS {
        let own = |anchor: &Anchor| Reading::from_anchor(anchor, 0);
        drop_disordered(anchors, |anchor| own(anchor).at_ns);
        align::thin(anchors, MOST_ANCHORS, own);
    }
}

/// A set of threads of a recording, as one bit for each of 64 hash values. It may contain more threads than were added.
#[derive(Clone, Copy, Default)]
pub struct ThreadSet(u64);

impl ThreadSet {
    /// Returns true if some thread may be in both sets. May be true by a collision of hash values, but is never wrongly false.
    pub fn meets(self, other: ThreadSet) -> bool {
        self.0 & other.0 != 0
    }
}

impl FromIterator<(i64, i64)> for ThreadSet {
    fn from_iter<T: IntoIterator<Item = (i64, i64)>>(threads: T) -> ThreadSet {
        let bits = threads.into_iter().map(|thread| 1 << thread_kind(thread));
        ThreadSet(bits.fold(0, |set, bit| set | bit))
    }
}

/// Returns the hash value of a thread, from 0 to 63. It is the thread's bit in a [`ThreadSet`].
#[inline(always)]
pub fn thread_kind((pid, tid): (i64, i64)) -> usize {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (tid ^ pid.rotate_left(32)).cast_unsigned();
    (mixed.wrapping_mul(SPREAD) >> 58) as usize
}

/// Number of a recording, and the pid and tid of a thread in it, as recorded.
pub type RecordedThread = (usize, (i64, i64));
