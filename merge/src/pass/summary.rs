//! The first pass: what the parts hold, as far as the second pass and the report need it before the first byte is written.

use crate::align::{self, Curve, Reading, drop_disordered};
use crate::event::damage::{Kind, Places};
use crate::event::era::Era;
use crate::event::loss::Losses;
use crate::event::mend::Repairs;
use crate::event::scan::{Found, Part, scan_part};
use crate::event::verbatim::object;
use crate::foreign::row_metadata::Hints;
use crate::fragment::assembly::StreamKey;
use crate::link::Gather;
use crate::pass::nesting::Nesting;
use crate::pass::summary_builder::Indexer;
use sa_recorder::format::{Anchor, TrackRecord};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Most anchors that are kept of a recording: all those of 40 minutes.
const MOST_ANCHORS: usize = 512;

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
    pub(crate) fn see(&mut self, ts_ns: i64, dur_ns: i64) {
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
    /// Whether the spans of each thread nest; taken out by whoever puts stretches together.
    pub(crate) nestings: Vec<((i64, i64), Nesting)>,
    pub(crate) phases: BTreeMap<u8, u64>,
    /// Objects that are no events, where they count.
    pub(crate) objects: u64,
    /// Whether all lines are in canonical order and a checksum vouches for them. Not asked of objects and windows.
    pub(crate) canonical: bool,
    /// Whether there is damage, a block header, or a line that repeats a key or has an id behind its front: such lines are scanned as
    /// carefully again.
    pub(crate) odd: bool,
    /// The last `process_name` of each pid.
    pub(crate) process_names: HashMap<i64, String>,
    /// The last `thread_name` of each thread.
    pub(crate) thread_names: HashMap<(i64, i64), String>,
    /// What the tids of tracks stand for.
    pub(crate) tracks: HashMap<(i64, i64), TrackRecord>,
    pub(crate) hints: Hints,
    pub(crate) explained: Vec<Explained>,
    pub(crate) lost_events: u64,
    pub(crate) losses: Losses,
    pub(crate) unfinished: u64,
    /// What both clocks showed, in the order of the lines; the most certain ones of many.
    pub(crate) anchors: Vec<Anchor>,
    pub(crate) ended: bool,
    /// How many spans were open in the ring, or were when somebody settled it.
    pub(crate) open: Option<u64>,
    /// The recorder has stopped keeping events.
    pub(crate) stopped: bool,
    pub(crate) places: Places,
    pub(crate) repairs: Repairs,
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
        self.hints.append(later.hints);
        self.explained.extend(later.explained);
        self.lost_events = self.lost_events.saturating_add(later.lost_events);
        self.losses.append(later.losses);
        self.unfinished += later.unfinished;
        self.anchors.extend(later.anchors);
        thin(&mut self.anchors);
        self.ended |= later.ended;
        self.open = later.open.or(self.open);
        self.stopped |= later.stopped;
        self.places.append(&later.places);
        self.repairs.append(&later.repairs);
    }

    /// Moves all its times.
    pub(crate) fn warp(&mut self, warp: &Curve) {
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

    /// The begin of its first event and the end of its last one; `None` if nothing in it has a time.
    pub(crate) fn range_ns(&self) -> Option<(i64, i64)> {
        let firsts = self.threads.values().map(|activity| activity.first_ns);
        let first_ns = firsts.min().filter(|first_ns| *first_ns != i64::MAX)?;
        Some((first_ns, self.last_ns()?))
    }

    /// Whether begins or ends of spans are events of their own, other than spans that did not end.
    pub(crate) fn has_halves(&self) -> bool {
        let count = |phase: &u8| self.phases.get(phase).copied().unwrap_or(0);
        count(&b'B') > self.unfinished || b"EbenSFTp".iter().any(|phase| count(phase) > 0)
    }

    /// Whether it has events that are shown whatever their time: metadata and unfinished spans.
    pub(crate) fn has_timeless(&self) -> bool {
        self.unfinished > 0 || self.phases.contains_key(&b'M')
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

/// Indexes parts of a file; `gather` looks for the requests of the events.
pub(crate) fn index_parts<'a>(
    bytes: &'a [u8],
    parts: &[Part],
    gather: Option<Gather<'a, '_>>,
) -> Index {
    index_era(bytes, parts, gather, None)
}

/// The same of a recording whose events must lie in an era.
pub(crate) fn index_era<'a>(
    bytes: &'a [u8],
    parts: &[Part],
    gather: Option<Gather<'a, '_>>,
    era: Option<Era>,
) -> Index {
    let mut indexer = Indexer::of_spans(gather);
    indexer.index.canonical = true;
    for part in parts {
        if let Some(era) = era {
            indexer.index.canonical = false;
            scan_part(bytes, *part, |at, found| match found {
                Found::Event(event) if !era.holds_event(&event) => {
                    indexer.damage(at, Kind::BadTime);
                }
                found => indexer.found(at, found),
            });
            continue;
        }
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
    let mut indexer = Indexer::new(None);
    for part in parts {
        scan_part(bytes, *part, |at, found| match found {
            Found::Event(event) => indexer.event(&event),
            Found::Damage(kind) if object(bytes, *part, at, kind).is_some() => indexer.object(),
            Found::Damage(kind) => indexer.damage(at, kind),
        });
    }
    indexer.finish()
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
        index_parts(text.as_bytes(), &[part], None)
    }

    /// What is known of trusted lines, each of them looked at by itself.
    fn one_by_one(text: &str) -> Index {
        let mut indexer = Indexer::of_spans(None);
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
                    let (found, expected) = (
                        index_parts(text.as_bytes(), &[part], None),
                        one_by_one(&text),
                    );
                    let facts = |index: &Index| {
                        let damage = index.places.listed.clone();
                        (
                            index.threads.clone(),
                            index.phases.clone(),
                            index.lost_events,
                            damage,
                            index.nestings.clone(),
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
