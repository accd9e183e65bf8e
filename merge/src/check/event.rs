//! One event after the other: what is wrong with it alone, and what it does on the timeline.

use super::finding::{Findings, Place};
use super::id::{Id, flow_key};
use super::rule::Rule;
use super::thread::{Thread, Threads};
use super::time::Time;
use super::timeline::{Act, Item, Timeline};
use crate::json::Fields;
use crate::number::unquoted;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Members that only some events need.
#[derive(Default, Deserialize)]
struct Rare {
    /// The scope of an instant.
    s: Option<Value>,
    /// Where an arrow ends.
    bp: Option<Value>,
    flow_in: Option<Value>,
    flow_out: Option<Value>,
}

/// The events of a trace.
pub(super) struct Events<'a> {
    text: &'a [u8],
    count: u64,
    threads: Threads,
    timeline: Timeline,
}

/// An event that is being looked at.
struct Event<'a, 'f> {
    text: &'a [u8],
    range: Range<usize>,
    fields: &'f Fields,
    place: Place,
}

impl<'a> Events<'a> {
    pub(super) fn new(text: &'a [u8]) -> Events<'a> {
        Events {
            text,
            count: 0,
            threads: Threads::default(),
            timeline: Timeline::default(),
        }
    }

    /// Number of events so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The place at `offset`, before the next event.
    pub(super) fn here(&self, offset: usize) -> Place {
        Place {
            offset: offset as u64,
            event: self.count,
        }
    }

    /// What is left when all events are known.
    pub(super) fn finish(self, findings: &mut Findings) {
        self.threads.finish(findings);
        self.timeline.finish(findings);
    }

    /// Adds the event in `range`.
    pub(super) fn add(&mut self, range: Range<usize>, fields: &Fields, findings: &mut Findings) {
        let event = Event {
            text: self.text,
            place: self.here(range.start),
            range,
            fields,
        };
        self.count += 1;
        let Some(phase) = event.phase() else {
            return findings.add(Rule::NoPhase, event.place);
        };
        let times = event.times(phase, findings);
        if phase == b'M' {
            return;
        }
        let Some((ts, dur)) = times else { return };
        let [pid, tid] = [fields.pid, fields.tid].map(|id| Id::of(id.of(self.text)));
        let thread = self.threads.add(pid, tid, event.place, findings);
        if let Some(act) = event.act(phase, dur, findings) {
            let place = event.place;
            self.timeline.add(Item {
                ts,
                thread,
                act,
                place,
            });
        }
    }
}

impl Event<'_, '_> {
    /// Viewers take the first character.
    fn phase(&self) -> Option<u8> {
        let text = self.fields.ph.of(self.text);
        let inner = unquoted(text);
        inner
            .first()
            .copied()
            .filter(|_| inner.len() + 2 == text.len())
    }

    /// The time and the duration; nothing if it is dropped for want of them.
    fn times(&self, phase: u8, findings: &mut Findings) -> Option<(i64, i64)> {
        let ts = Time::of(self.fields.ts.of(self.text));
        let dur = Time::of(self.fields.dur.of(self.text));
        let mut is_off = false;
        let mut number = |time| match time {
            Time::Ns { ns, is_off: off } => {
                is_off |= off;
                Some(ns)
            }
            Time::Absent | Time::Bad => None,
        };
        let (ts_ns, dur_ns) = (number(ts), number(dur));
        let rule = match (ts, dur) {
            (Time::Bad, _) | (_, Time::Bad) => Rule::BadTime,
            (Time::Absent, _) if phase != b'M' => Rule::NoTs,
            _ if ts_ns.is_some_and(|ns| ns < 0) => Rule::NegativeTs,
            (_, Time::Absent) if phase == b'X' => Rule::NoDur,
            _ => {
                if phase == b'X' && dur_ns.is_some_and(|ns| ns < 0) {
                    findings.add(Rule::NegativeDur, self.place);
                }
                if is_off {
                    findings.add(Rule::ImpreciseTime, self.place);
                }
                return Some((ts_ns.unwrap_or(0), dur_ns.unwrap_or(0).max(0)));
            }
        };
        findings.add(rule, self.place);
        None
    }

    fn act(&self, phase: u8, dur_ns: i64, findings: &mut Findings) -> Option<Act> {
        let mut lost = |rule| {
            findings.add(rule, self.place);
            None
        };
        match phase {
            b'X' => {
                if self.fields.bind_id.is_some() && !self.has_direction() {
                    lost(Rule::FlowWithoutDirection);
                }
                Some(Act::Span(dur_ns))
            }
            b'B' => Some(Act::Begin(self.name().unwrap_or(0))),
            b'E' => Some(Act::End(self.name())),
            b'i' | b'I' | b'R' => self.is_of_thread().then_some(Act::Span(0)),
            b's' | b't' | b'f' => self.flow(phase).or_else(|| lost(Rule::FlowId)),
            b'b' | b'n' | b'e' => {
                let has_id = self.fields.id.is_some() || self.fields.id2.is_some();
                if !has_id || !self.fields.pid.is_some() {
                    lost(Rule::AsyncWithoutId);
                }
                None
            }
            b'C' => {
                let count = self.bad_values();
                findings.add_many(
                    Rule::CounterValue,
                    count,
                    &[self.place][..usize::from(count > 0)],
                );
                None
            }
            // Where clocks meet, which no viewer draws.
            b'c' => None,
            _ => lost(Rule::UnknownPhase),
        }
    }

    fn flow(&self, phase: u8) -> Option<Act> {
        let fields = self.fields;
        let flow = flow_key(self.text, fields.id, fields.cat, fields.name)?;
        Some(match phase {
            b's' => Act::Start(flow),
            b'f' if self.rare().bp.is_none_or(|bp| bp != "e") => Act::EndNext(flow),
            _ => Act::Step(flow),
        })
    }

    /// Values of a counter that are no numbers; of one without values one.
    fn bad_values(&self) -> u64 {
        let args = self.fields.args.of(self.text);
        let Ok(values) = serde_json::from_slice::<Map<String, Value>>(args) else {
            return 1;
        };
        let is_number = |value: &Value| match value {
            Value::String(text) => text.parse::<f64>().is_ok(),
            _ => value.is_number(),
        };
        let bad = values.values().filter(|value| !is_number(value)).count();
        bad.max(usize::from(values.is_empty())) as u64
    }

    fn name(&self) -> Option<u64> {
        let name = self.fields.name.of(self.text);
        self.fields.name.is_some().then(|| xxh3_64(name))
    }

    fn rare(&self) -> Rare {
        serde_json::from_slice(&self.text[self.range.clone()]).unwrap_or_default()
    }

    fn has_direction(&self) -> bool {
        let rare = self.rare();
        [rare.flow_in, rare.flow_out].contains(&Some(Value::Bool(true)))
    }

    /// Those of a process or of all are drawn elsewhere.
    fn is_of_thread(&self) -> bool {
        self.rare().s.is_none_or(|s| s != "g" && s != "p")
    }
}

/// The thread on which viewers show an event.
pub(super) fn shown(pid: Id, tid: Id) -> Thread {
    let pid = pid.shown();
    match tid.shown() {
        0 => (pid, pid),
        tid => (pid, tid),
    }
}
