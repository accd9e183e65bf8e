//! The first pass: what the parts hold, as far as the second pass and the report need it before the first byte is written.

use crate::assembly::StreamKey;
use crate::damage::{Kind, Places};
use crate::line::Event;
use crate::scan::{Found, Part, scan_part};
use crate::verbatim::object;
use sa_recorder::format::{
    ANCHOR_RECORD, Anchor, BLOCK_RECORD, END_RECORD, FRAGMENT_RECORD, LOSS_RECORD, Metadata,
    REMOVED_RECORD, RemovedStreams, TRACK_RECORD, TrackRecord,
};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Events and time range of a thread, times in ns as its lines say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Activity {
    pub(crate) events: u64,
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
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
    pub(crate) fn add(&mut self, other: &Activity) {
        self.events += other.events;
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
    }

    pub(crate) fn shifted(&self, shift_ns: i64) -> Activity {
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
pub(crate) struct Index {
    pub(crate) threads: HashMap<(i64, i64), Activity>,
    pub(crate) phases: BTreeMap<u8, u64>,
    /// Objects that are no events, where they count.
    pub(crate) objects: u64,
    /// Whether there is damage, or a line that repeats a key or has an id behind its front: such lines are scanned as carefully again.
    pub(crate) odd: bool,
    /// The last `process_name` of each pid.
    pub(crate) process_names: HashMap<i64, String>,
    /// The last `thread_name` of each thread.
    pub(crate) thread_names: HashMap<(i64, i64), String>,
    /// What the tids of tracks stand for.
    pub(crate) tracks: HashMap<(i64, i64), TrackRecord>,
    pub(crate) explained: Vec<Explained>,
    pub(crate) lost_events: u64,
    pub(crate) unfinished: u64,
    pub(crate) anchor: Option<Anchor>,
    pub(crate) ended: bool,
    /// The recorder has stopped keeping events.
    pub(crate) stopped: bool,
    pub(crate) places: Places,
}

impl Index {
    /// Number of events, and of objects that count as such.
    pub(crate) fn events(&self) -> u64 {
        self.phases.values().sum::<u64>() + self.objects
    }

    /// Adds what comes after `self`.
    pub(crate) fn append(&mut self, later: Index) {
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
        self.explained.extend(later.explained);
        self.lost_events = self.lost_events.saturating_add(later.lost_events);
        self.unfinished += later.unfinished;
        self.anchor = better(self.anchor, later.anchor);
        self.ended |= later.ended;
        self.stopped |= later.stopped;
        self.places.append(&later.places);
    }

    /// Forgets the events, but not what it knows by them.
    pub(crate) fn forget_events(&mut self) {
        self.threads.clear();
        self.phases.clear();
        self.unfinished = 0;
    }

    /// Adds the events of another index, and nothing else.
    pub(crate) fn add_events(&mut self, other: Index) {
        self.append(Index {
            threads: other.threads,
            phases: other.phases,
            unfinished: other.unfinished,
            ..Index::default()
        });
    }

    /// The end of its last event; `None` if nothing in it has a time.
    pub(crate) fn last_ns(&self) -> Option<i64> {
        let timed = self
            .threads
            .values()
            .filter(|activity| activity.first_ns != i64::MAX);
        timed.map(|activity| activity.last_ns).max()
    }

    /// Whether it has events that are shown whatever their time: metadata and unfinished spans.
    pub(crate) fn has_timeless(&self) -> bool {
        self.unfinished > 0 || self.phases.contains_key(&b'M')
    }
}

/// The anchor that is more certain, the earlier one if they are the same.
fn better(one: Option<Anchor>, other: Option<Anchor>) -> Option<Anchor> {
    match (one, other) {
        (Some(one), Some(other)) if other.uncertainty_ns < one.uncertainty_ns => Some(other),
        (None, other) => other,
        (one, _) => one,
    }
}

/// The records that the trace leaves out.
const OWN_RECORDS: [&str; 6] = [
    FRAGMENT_RECORD,
    ANCHOR_RECORD,
    REMOVED_RECORD,
    BLOCK_RECORD,
    END_RECORD,
    TRACK_RECORD,
];

/// Tells whether an event is one of the format's own records, which the trace leaves out.
#[inline]
pub(crate) fn is_left_out(event: &Event<'_>) -> bool {
    event.is_metadata() && own_record(event).is_some()
}

fn own_record(event: &Event<'_>) -> Option<&'static str> {
    let name = event.name();
    if !name.starts_with(b"sa_") {
        return None;
    }
    OWN_RECORDS.into_iter().find(|own| own.as_bytes() == name)
}

/// Indexes parts of a file.
pub(crate) fn index_parts(bytes: &[u8], parts: &[Part]) -> Index {
    index_kept(bytes, parts, |_| true)
}

/// Indexes parts of a file in which every object counts.
pub(crate) fn index_objects(bytes: &[u8], parts: &[Part]) -> Index {
    let mut indexer = Indexer::default();
    for part in parts {
        scan_part(bytes, *part, |at, found| match found {
            Found::Event(event) => indexer.event(&event),
            Found::Damage(kind) if object(bytes, *part, at, kind).is_some() => indexer.object(),
            Found::Damage(kind) => indexer.damage(at, kind),
        });
    }
    indexer.finish()
}

/// Indexes those events in parts of a file that `keeps` wants.
pub(crate) fn index_kept(
    bytes: &[u8],
    parts: &[Part],
    keeps: impl Fn(&Event<'_>) -> bool,
) -> Index {
    let mut indexer = Indexer::default();
    for part in parts {
        scan_part(bytes, *part, |at, found| match found {
            Found::Event(event) if keeps(&event) => indexer.event(&event),
            Found::Event(_) => {}
            Found::Damage(kind) => indexer.damage(at, kind),
        });
    }
    indexer.finish()
}

#[derive(Default)]
struct Indexer {
    index: Index,
    phases: Vec<u64>,
    /// The thread of the last event, not yet in the map: events come in runs.
    current: Option<((i64, i64), Activity)>,
}

impl Indexer {
    fn damage(&mut self, at: usize, kind: Kind) {
        self.index.odd = true;
        self.index.places.add(at as u64, kind);
    }

    fn object(&mut self) {
        self.index.odd = true;
        self.index.objects += 1;
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        self.index.odd |= event.fields.repeated | event.fields.bind_id.is_some();
        if event.is_metadata() && !self.metadata(event) {
            return;
        }
        if self.phases.is_empty() {
            self.phases.resize(256, 0);
        }
        self.phases[usize::from(event.phase)] += 1;
        self.count(event);
        match event.phase {
            b'i' | b'I' if event.name() == LOSS_RECORD.as_bytes() => self.loss(event),
            b'B' if event.is_unfinished() => self.index.unfinished += 1,
            _ => {}
        }
    }

    #[inline]
    fn count(&mut self, event: &Event<'_>) {
        let thread = (event.pid, event.tid);
        let activity = match &mut self.current {
            Some((current, activity)) if *current == thread => activity,
            _ => {
                self.store_current();
                &mut self.current.insert((thread, Activity::default())).1
            }
        };
        activity.events += 1;
        if !event.is_metadata() {
            activity.first_ns = activity.first_ns.min(event.ts_ns);
            activity.last_ns = activity.last_ns.max(event.ts_ns + event.dur_ns);
        }
    }

    fn store_current(&mut self) {
        if let Some((thread, activity)) = self.current.take() {
            self.index.threads.entry(thread).or_default().add(&activity);
        }
    }

    /// Reads a metadata record; tells whether it is shown.
    fn metadata(&mut self, event: &Event<'_>) -> bool {
        match own_record(event) {
            Some(END_RECORD) => self.index.ended = true,
            Some(REMOVED_RECORD) => self.removed(event),
            Some(TRACK_RECORD) => {
                let record = serde_json::from_slice::<Metadata<TrackRecord>>(event.line).ok();
                let thread = (event.pid, event.tid);
                let track = record.map(|record| (thread, record.args));
                self.index.tracks.extend(track);
            }
            Some(ANCHOR_RECORD) => {
                let anchor = serde_json::from_slice::<Metadata<Anchor>>(event.line).ok();
                self.index.anchor = better(self.index.anchor, anchor.map(|record| record.args));
            }
            Some(_) => {}
            None => {
                self.name(event);
                return true;
            }
        }
        false
    }

    /// Positions that went with removed segments.
    fn removed(&mut self, event: &Event<'_>) {
        let record = serde_json::from_slice::<Metadata<RemovedStreams>>(event.line).ok();
        let streams = record.map(|record| record.args.streams).unwrap_or_default();
        let explained = streams
            .into_iter()
            .map(|(slot, generation, to)| ((slot, generation), 0..to));
        self.index.explained.extend(explained);
    }

    fn name(&mut self, event: &Event<'_>) {
        #[derive(Deserialize)]
        struct Named {
            args: Name,
        }
        #[derive(Deserialize)]
        struct Name {
            name: String,
        }
        let parse = || {
            serde_json::from_slice::<Named>(event.line)
                .ok()
                .map(|named| named.args.name)
        };
        match event.name() {
            b"process_name" => self
                .index
                .process_names
                .extend(parse().map(|name| (event.pid, name))),
            b"thread_name" => self
                .index
                .thread_names
                .extend(parse().map(|name| ((event.pid, event.tid), name))),
            _ => {}
        }
    }

    fn loss(&mut self, event: &Event<'_>) {
        #[derive(Deserialize)]
        struct Record {
            args: Loss,
        }
        #[derive(Deserialize)]
        struct Loss {
            cause: String,
            events: u64,
            slot: Option<u32>,
            #[serde(rename = "gen")]
            generation: Option<u32>,
            from: Option<u64>,
            to: Option<u64>,
            #[serde(default)]
            stopped: bool,
        }
        let Ok(Record { args: loss }) = serde_json::from_slice(event.line) else {
            return;
        };
        self.index.stopped |= loss.stopped;
        // A clamped duration is told the same way, but its event is there.
        if loss.cause != "clamped" {
            self.index.lost_events = self.index.lost_events.saturating_add(loss.events);
        }
        if let Loss {
            slot: Some(slot),
            generation: Some(generation),
            from: Some(from),
            to: Some(to),
            ..
        } = loss
        {
            self.index.explained.push(((slot, generation), from..to));
        }
    }

    fn finish(mut self) -> Index {
        self.store_current();
        let phases = self
            .phases
            .iter()
            .zip(0u8..=255)
            .filter(|(count, _)| **count > 0);
        self.index.phases = phases.map(|(count, phase)| (phase, *count)).collect();
        self.index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(text: &str) -> Index {
        let part = Part {
            start: 0,
            end: text.len(),
            trusted: false,
        };
        index_parts(text.as_bytes(), &[part])
    }

    #[test]
    fn counts_what_is_shown() {
        let index = index(concat!(
            r#"{"ph":"M","pid":1,"tid":1,"name":"sa_end","args":{"monotonic_ns":9}}"#,
            "\n",
            r#"{"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"a"}}"#,
            "\n",
            r#"{"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"b"}}"#,
            "\n",
            r#"{"ph":"X","pid":1,"tid":2,"ts":5.000,"dur":2.000,"name":"x","cat":""}"#,
            "\n",
            r#"{"ph":"B","pid":1,"tid":2,"ts":4.000,"name":"x","cat":"","args":{"unfinished":true}}"#,
            "\n",
            r#"{"ph":"i","pid":1,"tid":1,"ts":6.000,"s":"p","name":"sa_loss","cat":"sa_profile","args":{"cause":"disk_full","events":3,"slot":1,"gen":0,"from":5,"to":9}}"#,
            "\n",
            r#"{"ph":"i","pid":1,"tid":1,"ts":6.000,"s":"p","name":"sa_loss","cat":"sa_profile","args":{"cause":"clamped","events":1}}"#,
            "\n",
        ));
        assert!(index.ended);
        assert_eq!(
            (index.events(), index.lost_events, index.unfinished),
            (6, 3, 1)
        );
        assert_eq!(index.process_names[&1], "b");
        assert_eq!(index.explained, [((1, 0), 5..9)]);
        assert_eq!(
            index.threads[&(1, 2)],
            Activity {
                events: 2,
                first_ns: 4000,
                last_ns: 7000
            }
        );
    }
}
