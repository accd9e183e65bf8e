//! What a stretch of lines holds, as far as the second pass and the report need it before the first byte is written.

use crate::align::{self, Curve, Reading, drop_disordered};
use crate::event::damage::Places;
use crate::event::loss::Losses;
use crate::event::mend::Repairs;
use crate::foreign::row_metadata::Hints;
use crate::fragment::assembly::StreamKey;
use crate::fragment::exit::Exit;
use crate::summary::nesting::Nesting;
use sa_format::control::Switch;
use sa_format::{Anchor, Phase, Reach, TrackRecord};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Most anchors that are kept of a recording: all those of 40 minutes.
const MOST_ANCHORS: usize = 512;

/// Events and time range of a thread, times in ns as its lines say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Number of events.
    pub events: u64,
    /// Begin of the first event; the largest time if none has one.
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
    /// Adds the events of another part of the thread.
    pub fn add(&mut self, other: &Activity) {
        self.events += other.events;
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
    }

    /// Adds the time of an event, which has been counted.
    #[inline(always)]
    pub fn see(&mut self, ts_ns: i64, dur_ns: i64) {
        self.first_ns = self.first_ns.min(ts_ns);
        self.last_ns = self.last_ns.max(ts_ns + dur_ns);
    }

    /// Returns the same activity with its times shifted.
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

/// Positions that a loss record explains.
pub(crate) type Explained = (StreamKey, Range<u64>);

/// What a stretch of lines holds.
#[derive(Clone, Default)]
pub struct ChunkSummary {
    /// Activity of each thread, by pid and tid.
    pub threads: HashMap<(i64, i64), Activity>,
    /// Whether the spans of each thread nest; taken out by whoever puts stretches together.
    pub nestings: Vec<((i64, i64), Nesting)>,
    /// Number of events by phase.
    pub phases: BTreeMap<Phase, u64>,
    /// Objects that are no events, where they count.
    pub objects: u64,
    /// Whether all lines are in canonical order and a checksum vouches for them. Not asked of objects and windows.
    pub canonical: bool,
    /// Whether there is damage, a block header, or a line that repeats a key or has an id behind its front: such lines are scanned as
    /// carefully again.
    pub odd: bool,
    /// The last `process_name` of each pid.
    pub process_names: HashMap<i64, String>,
    /// The last `thread_name` of each thread.
    pub thread_names: HashMap<(i64, i64), String>,
    /// What the tids of tracks stand for.
    pub tracks: HashMap<(i64, i64), TrackRecord>,
    /// Hints of other profilers about their rows.
    pub hints: Hints,
    /// What the preload library says that it sees, by pid.
    pub reach: HashMap<i64, Reach>,
    /// The last switch of the recorder. Most chunks have none, and there may be many chunks.
    pub switch: Option<Box<Switch>>,
    /// Positions that loss records explain.
    pub explained: Vec<Explained>,
    /// Lost events, as the loss records say.
    pub lost_events: u64,
    /// Losses by thread and cause.
    pub losses: Losses,
    /// Begins of spans that did not end.
    pub unfinished: u64,
    /// What both clocks showed, in the order of the lines; the most certain ones of many.
    pub anchors: Vec<Anchor>,
    /// True if the recorder or a reader wrote the record of the end.
    pub ended: bool,
    /// True if a snapshot ended the recording while the process was running.
    pub was_running: bool,
    /// How many spans were open in the ring, or were when somebody settled it.
    pub open: Option<u64>,
    /// How the process ended, if whoever settled it knew.
    pub exit: Option<Exit>,
    /// The recorder has stopped keeping events.
    pub stopped: bool,
    /// Damaged places.
    pub places: Places,
    /// Mended events, by kind.
    pub repairs: Repairs,
}

impl ChunkSummary {
    /// Number of events, and of objects that count as such.
    pub fn events(&self) -> u64 {
        self.phases.values().sum::<u64>() + self.objects
    }

    /// Adds what comes after `self`.
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
        self.reach.extend(later.reach);
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

    /// Moves all its times.
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

    /// Forgets the events, but not what it knows by them.
    pub fn forget_events(&mut self) {
        self.threads.clear();
        self.phases.clear();
        self.unfinished = 0;
    }

    /// Adds the events of another summary, and nothing else.
    pub fn add_events(&mut self, other: ChunkSummary) {
        self.append(ChunkSummary {
            threads: other.threads,
            phases: other.phases,
            unfinished: other.unfinished,
            ..ChunkSummary::default()
        });
    }

    /// The end of its last event; `None` if nothing in it has a time.
    pub fn last_ns(&self) -> Option<i64> {
        let timed = self
            .threads
            .values()
            .filter(|activity| activity.first_ns != i64::MAX);
        timed.map(|activity| activity.last_ns).max()
    }

    /// The begin of its first event and the end of its last one; `None` if nothing in it has a time.
    pub fn range_ns(&self) -> Option<(i64, i64)> {
        let firsts = self.threads.values().map(|activity| activity.first_ns);
        let first_ns = firsts.min().filter(|first_ns| *first_ns != i64::MAX)?;
        Some((first_ns, self.last_ns()?))
    }

    /// Whether begins or ends of spans are events of their own, other than spans that did not end.
    pub fn has_halves(&self) -> bool {
        let count = |phase: &Phase| self.phases.get(phase).copied().unwrap_or(0);
        let has_other = |phase: &Phase| phase.is_async() || *phase == Phase::End;
        count(&Phase::Begin) > self.unfinished || self.phases.keys().any(has_other)
    }

    /// Whether it has events that are shown whatever their time: metadata, CPU profiles and unfinished spans.
    pub fn has_timeless(&self) -> bool {
        let has = |phase: &Phase| self.phases.contains_key(phase);
        self.unfinished > 0 || has(&Phase::Metadata) || has(&Phase::Sample)
    }
}

/// Keeps the most certain ones of many, all the time as dense.
fn thin(anchors: &mut Vec<Anchor>) {
    if anchors.len() > MOST_ANCHORS {
        let own = |anchor: &Anchor| Reading::of(anchor, 0);
        drop_disordered(anchors, |anchor| own(anchor).at_ns);
        align::thin(anchors, MOST_ANCHORS, own);
    }
}

/// Some threads of a recording: one bit for each of 64 kinds.
#[derive(Clone, Copy, Default)]
pub struct ThreadSet(u64);

impl ThreadSet {
    /// Returns true if both sets may contain the same thread.
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

/// Which of 64 kinds a thread is of.
#[inline(always)]
pub fn thread_kind((pid, tid): (i64, i64)) -> usize {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (tid ^ pid.rotate_left(32)).cast_unsigned();
    (mixed.wrapping_mul(SPREAD) >> 58) as usize
}

/// A thread of a recording, as its lines name it.
pub type RecordedThread = (usize, (i64, i64));
