//! The first pass: what the parts hold, as far as the second pass and the report need it before the first byte is written.

use crate::alike::{Fronts, Timed};
use crate::assembly::StreamKey;
use crate::damage::{Kind, Places};
use crate::line::{Event, parse_canonical};
use crate::scan::{Found, Part, general, lines, scan_part};
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

    /// Adds the time of an event, which has been counted.
    #[inline(always)]
    fn see(&mut self, ts_ns: i64, dur_ns: i64) {
        self.first_ns = self.first_ns.min(ts_ns);
        self.last_ns = self.last_ns.max(ts_ns + dur_ns);
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
    /// Whether all lines are in canonical order and a checksum vouches for them. Not asked of objects and windows.
    pub(crate) canonical: bool,
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
    let mut indexer = Indexer::default();
    indexer.index.canonical = true;
    for part in parts {
        if part.trusted {
            indexer.trusted(bytes, *part);
            continue;
        }
        scan_part(bytes, *part, |at, found| {
            indexer.index.canonical = false; // empty lines, with which blocks are filled up, are nothing
            indexer.found(at, found);
        });
    }
    indexer.finish()
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

struct Indexer {
    index: Index,
    phases: [u64; 256],
    /// The thread of the last event, not yet in the map: events come in runs.
    current: Option<((i64, i64), Activity)>,
}

impl Default for Indexer {
    fn default() -> Self {
        Indexer {
            index: Index::default(),
            phases: [0; 256],
            current: None,
        }
    }
}

impl Indexer {
    /// Lines that a checksum vouches for. Nearly all begin like one before.
    fn trusted(&mut self, bytes: &[u8], part: Part) {
        let mut fronts = Fronts::default();
        for (line, at) in lines(bytes, part) {
            if let Some((front, timed)) = fronts.find(line)
                && self.count_alike(&front.known, &timed).is_some()
            {
                continue;
            }
            let Some(event) = parse_canonical(line) else {
                general(line, at, None, &mut |at, found| {
                    self.index.canonical = false;
                    self.found(at, found);
                });
                continue;
            };
            fronts.keep(&event, || (event.phase, (event.pid, event.tid)));
            self.event(&event);
        }
    }

    /// Counts an event of a known phase and thread; `None` if it needs a closer look.
    #[inline(always)]
    fn count_alike(&mut self, (phase, thread): &(u8, (i64, i64)), timed: &Timed<'_>) -> Option<()> {
        if timed.rest.last() != Some(&b'}') {
            return None;
        }
        let dur_ns = match phase {
            b'X' => timed.dur_ns()?,
            b'i' if !timed.has_common_name() => return None,
            b's' | b't' | b'f' => timed.flow_id().map(|_| 0)?,
            _ => 0,
        };
        self.phases[usize::from(*phase)] += 1;
        let activity = self.activity(*thread);
        activity.events += 1;
        activity.see(timed.ts_ns, dur_ns);
        Some(())
    }

    #[inline]
    fn found(&mut self, at: usize, found: Found<'_>) {
        match found {
            Found::Event(event) => self.event(&event),
            Found::Damage(kind) => self.damage(at, kind),
        }
    }

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
        let activity = self.activity((event.pid, event.tid));
        activity.events += 1;
        if !event.is_metadata() {
            activity.see(event.ts_ns, event.dur_ns);
        }
    }

    /// Where the present run of events of one thread is counted.
    #[inline(always)]
    fn activity(&mut self, thread: (i64, i64)) -> &mut Activity {
        if self.current.is_none_or(|(current, _)| current != thread) {
            self.store_current();
        }
        &mut self.current.get_or_insert((thread, Activity::default())).1
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

    /// What is known of trusted lines, each of them looked at by itself.
    fn one_by_one(text: &str) -> Index {
        let mut indexer = Indexer::default();
        let part = Part {
            start: 0,
            end: text.len(),
            trusted: true,
        };
        scan_part(text.as_bytes(), part, |at, found| indexer.found(at, found));
        indexer.finish()
    }

    #[test]
    fn alike_lines_are_counted_as_each_by_itself() {
        let fronts = [
            r#"{"ph":"X","pid":1,"tid":2,"ts":7.000"#,
            r#"{"ph":"i","pid":1,"tid":2,"ts":7.000"#,
            r#"{"ph":"C","pid":1,"tid":2,"ts":7.000"#,
            r#"{"ph":"t","pid":1,"tid":2,"ts":7.000"#,
        ];
        let rests = [
            r#","dur":2.000,"name":"a","cat":""}"#,
            r#","dur":2,"name":"a","cat":""}"#,
            r#","dur":-2.000,"name":"a","cat":""}"#,
            r#","s":"t","name":"a","cat":""}"#,
            r#","s":"t","name":"a}"#,
            r#","s":"tt","name":"a","cat":""}"#,
            r#","s":"t","name":"sa_loss","cat":"","args":{"cause":"disk_full","events":3}}"#,
            r#","name":"sa_loss","s":"t","cat":"","args":{"cause":"disk_full","events":3}}"#,
            r#","id2":{"local":"0x5"},"name":"a","cat":""}"#,
            r#","id2":{},"name":"a","cat":""}"#,
            r#","id2":7,"name":"a","cat":""}"#,
            r#","bind_id":7,"name":"a","cat":""}"#,
            "0}",
            "} ",
            "}",
        ];
        for front in fronts {
            for first in rests {
                for rest in rests {
                    let text = format!("{front}{first}\n{front}{rest}\n\n{front}{first}\n");
                    let part = Part {
                        start: 0,
                        end: text.len(),
                        trusted: true,
                    };
                    let (found, expected) =
                        (index_parts(text.as_bytes(), &[part]), one_by_one(&text));
                    let facts = |index: &Index| {
                        let damage = index.places.listed.clone();
                        (
                            index.threads.clone(),
                            index.phases.clone(),
                            index.lost_events,
                            damage,
                        )
                    };
                    assert_eq!(facts(&found), facts(&expected), "{text}");
                }
            }
        }
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
