//! One event after the other: what is wrong with it alone, and what it does on the timeline.

use super::arrow::{Arrow, Step};
use super::counter::bad_values;
use super::finding::{Findings, Place};
use super::id::{Id, flow_id, flow_key, is_async_id, value_of, word};
use super::rule::Rule;
use super::thread::{Thread, Threads};
use super::time::{Time, has_bad_thread_time};
use super::timeline::{Act, Item, Timeline, Words};
use crate::json::{Fields, Span};
use crate::number::unquoted;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::ops::Range;

/// The name of spans that have none.
const NO_NAME: &[u8] = b"\"[No name]\"";
/// The duration that stands for none.
const NO_END: i64 = -1;

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
        let is_span = matches!(phase, b'X' | b'B');
        findings.spans += u64::from(is_span);
        let times = event.times(phase, findings);
        if phase == b'M' {
            return;
        }
        let Some((ts, dur)) = times else {
            findings.spans_dropped += u64::from(is_span);
            return;
        };
        let [pid, tid] = [fields.pid, fields.tid].map(|id| Id::of(id.of(self.text)));
        let thread = self.threads.add(pid, tid, event.place, findings);
        let item = |thread, act| Item {
            ts,
            rank: rank(phase, dur),
            thread,
            act,
            place: event.place,
        };
        if let Some(act) = event.act(phase, dur, findings) {
            self.timeline.add(item(Some(thread), act));
        }
        if let Some(act) = event.bound(phase, findings) {
            self.timeline.add(item(is_span.then_some(thread), act));
        }
    }
}

/// The place among the events of one time.
fn rank(phase: u8, dur_ns: i64) -> i64 {
    match phase {
        b'E' => i64::MIN,
        b'X' => i64::MAX.wrapping_sub(dur_ns),
        _ => i64::MAX,
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
            _ if has_bad_thread_time(&self.text[self.range.clone()]) => Rule::BadTime,
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
                return Some((ts_ns.unwrap_or(0), dur_ns.unwrap_or(0)));
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
            b'X' if dur_ns != NO_END => Some(Act::Span(dur_ns)),
            b'X' | b'B' => Some(Act::Begin(self.words(NO_NAME))),
            b'E' => Some(Act::End(self.words(b""))),
            b'i' | b'I' | b'R' => match self.instant() {
                Ok(is_of_thread) => is_of_thread.then_some(Act::Span(0)),
                Err(rule) => lost(rule),
            },
            b's' | b't' | b'f' => self.flow(phase).or_else(|| lost(Rule::FlowId)),
            b'b' | b'n' | b'e' => {
                if !self.is_async() {
                    lost(Rule::AsyncWithoutId);
                }
                None
            }
            b'C' => {
                let count = bad_values(self.fields.args.of(self.text));
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
        let key = flow_key(self.text, fields.id, fields.cat, fields.name)?;
        let step = match phase {
            b's' => Step::Start,
            b'f' if self.rare().bp.is_none_or(|bp| bp != "e") => Step::EndNext,
            _ => Step::Reach,
        };
        Some(Act::Arrow(step, Arrow::Named(key)))
    }

    /// The arrow that a span brings with it.
    fn bound(&self, phase: u8, findings: &mut Findings) -> Option<Act> {
        let brings = match phase {
            b'X' | b'B' => true,
            b'b' | b'n' => self.is_async(),
            _ => false,
        };
        let value = value_of(self.fields.bind_id.of(self.text));
        if !brings || matches!(value, b"" | b"null") {
            return None;
        }
        let Some(id) = flow_id(value) else {
            findings.add(Rule::BindId, self.place);
            return None;
        };
        let rare = self.rare();
        let [is_in, is_out] =
            [rare.flow_in, rare.flow_out].map(|flag| flag == Some(Value::Bool(true)));
        let step = match (is_in, is_out) {
            (false, false) => {
                findings.add(Rule::FlowWithoutDirection, self.place);
                return None;
            }
            (false, true) => Step::Start,
            (true, _) => Step::Reach,
        };
        Some(Act::Arrow(step, Arrow::Bound(id)))
    }

    /// Whether it names an async track.
    fn is_async(&self) -> bool {
        let is_id = |member: Span| is_async_id(value_of(member.of(self.text)));
        let id2 = serde_json::from_slice(value_of(self.fields.id2.of(self.text)));
        let id2: Map<String, Value> = id2.unwrap_or_default();
        let is_id2 = |key| id2.get(key).is_some_and(|id| id.is_string() || id.is_i64());
        let has_id = is_id(self.fields.id) || is_id2("global") || is_id2("local");
        has_id && Id::of(self.fields.pid.of(self.text)) != Id::Absent
    }

    /// What tells it from other spans; `no_name` is the name of one that has none.
    fn words(&self, no_name: &[u8]) -> Words {
        let name = match word(self.fields.name.of(self.text)) {
            0 => word(no_name),
            name => name,
        };
        let cat = word(self.fields.cat.of(self.text));
        Words { name, cat }
    }

    fn rare(&self) -> Rare {
        serde_json::from_slice(&self.text[self.range.clone()]).unwrap_or_default()
    }

    /// Whether an instant lies on a thread; those of a process or of all are drawn elsewhere.
    fn instant(&self) -> Result<bool, Rule> {
        let is_there = |id: Span| Id::of(id.of(self.text)) != Id::Absent;
        let scope = self.rare().s;
        let (is_of_thread, is_drawn) = match scope.as_ref().and_then(Value::as_str) {
            Some("g") => (false, true),
            Some("p") => (false, is_there(self.fields.pid)),
            _ => (true, is_there(self.fields.tid)),
        };
        is_drawn
            .then_some(is_of_thread)
            .ok_or(Rule::InstantWithoutThread)
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
