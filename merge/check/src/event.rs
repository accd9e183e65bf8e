//! One event after the other: what is wrong with it alone, and what it does on the timeline.

mod flow;
mod member;

use super::counter::bad_values;
use super::finding::{Findings, Place};
use super::id::{Id, async_key, word};
use super::item::{Act, Item, Row, Words};
use super::loose::member;
use super::rule::Rule;
use super::temporary::Folder;
use super::thread::{Thread, Threads};
use super::time::Time;
use super::timeline::Timeline;
use super::track::{Key, Keys};
use member::NO_PHASE;
use std::io;
use std::ops::Range;
use trace_base::number::unquoted;
use trace_event::json::{Fields, Span};
use trace_event::member::is_shown;

/// The name of spans that have none.
const NO_NAME: &[u8] = b"\"[No name]\"";
/// The duration that stands for none.
const NO_END: i64 = -1;

/// The events of a trace.
pub(super) struct Events<'a, 'f> {
    text: &'a [u8],
    count: u64,
    threads: Threads,
    keys: Keys,
    timeline: Timeline<'f>,
}

/// An event that is being looked at.
struct Event<'a, 'f> {
    text: &'a [u8],
    range: Range<usize>,
    fields: &'f Fields,
    place: Place,
}

impl<'a, 'f> Events<'a, 'f> {
    /// Events of `text`; what is too much for memory goes to files in `folder`.
    pub(super) fn new(text: &'a [u8], folder: &'f Folder) -> Events<'a, 'f> {
        Events {
            text,
            count: 0,
            threads: Threads::default(),
            keys: Keys::default(),
            timeline: Timeline::new(folder),
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
    pub(super) fn finish(self, findings: &mut Findings) -> io::Result<()> {
        self.threads.finish(findings);
        self.timeline.finish(self.keys.tracks(), findings)
    }

    /// Adds the event in `range`.
    pub(super) fn add(
        &mut self,
        range: Range<usize>,
        fields: &Fields,
        findings: &mut Findings,
    ) -> io::Result<()> {
        let event = Event {
            text: self.text,
            place: self.here(range.start),
            range,
            fields,
        };
        self.count += 1;
        let Some(phase) = event.phase() else {
            findings.add(Rule::NoPhase, event.place);
            if !event.look_at_members(NO_PHASE, findings) {
                findings.add(Rule::BadTime, event.place);
            }
            return Ok(());
        };
        let is_span = matches!(phase, b'X' | b'B' | b'b');
        findings.spans += u64::from(is_span);
        let has_good_times = event.look_at_members(phase, findings);
        let times = event.times(phase, has_good_times, findings);
        if phase == b'M' {
            return Ok(());
        }
        let act = times.and_then(|(_, dur)| event.act(phase, dur, findings));
        findings.spans_dropped += u64::from(is_span && act.is_none());
        let Some((ts, dur)) = times else {
            return Ok(());
        };
        let row = self.row(&event, phase, ts, act.is_some(), findings);
        let acts = [act, event.bound(phase, findings)];
        for (act, row) in acts
            .into_iter()
            .flatten()
            .filter_map(|act| Some((act, row?)))
        {
            self.timeline.add(Item {
                ts,
                rank: rank(phase, dur),
                row,
                act,
                place: event.place,
            })?;
        }
        Ok(())
    }

    /// Where an event is drawn, if it is. Counters and async events lie on a process, whatever thread they name.
    fn row(
        &mut self,
        event: &Event<'_, '_>,
        phase: u8,
        ts: i64,
        is_drawn: bool,
        findings: &mut Findings,
    ) -> Option<Row> {
        let ids = [event.fields.pid, event.fields.tid].map(|id| Id::of(id.of(self.text)));
        if is_of_process(phase) && ids[0] == Id::OutOfRange {
            findings.add(Rule::IdOutOfRange, event.place);
        }
        match event.async_key(phase) {
            Some(key) => {
                let name = word(event.fields.name.of(self.text));
                let order = (ts, event.place.event);
                Some(Row::Async(self.keys.add(key, name, order)))
            }
            None if is_drawn => Some(Row::Thread(self.threads.add(ids, event.place, findings))),
            None => None,
        }
    }
}

/// Whether such events are drawn on their process, beside its threads.
fn is_of_process(phase: u8) -> bool {
    matches!(phase, b'C' | b'b' | b'n' | b'e')
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
    fn times(
        &self,
        phase: u8,
        has_good_times: bool,
        findings: &mut Findings,
    ) -> Option<(i64, i64)> {
        let ts = Time::of(self.fields.ts.of(self.text));
        let dur = Time::of(self.fields.dur.of(self.text));
        let number = |time| match time {
            Time::Ns { ns, .. } => Some(ns),
            Time::Absent | Time::Bad => None,
        };
        let is_off = |time| matches!(time, Time::Ns { is_off: true, .. });
        let (ts_ns, dur_ns) = (number(ts), number(dur));
        let rule = match (ts, dur) {
            (Time::Bad, _) | (_, Time::Bad) => Rule::BadTime,
            _ if !has_good_times => Rule::BadTime,
            (Time::Absent, _) if phase != b'M' => Rule::NoTs,
            _ if ts_ns.is_some_and(|ns| ns < 0) => Rule::NegativeTs,
            (_, Time::Absent) if phase == b'X' => Rule::NoDur,
            _ => {
                if phase == b'X' && dur_ns.is_some_and(|ns| ns < 0) {
                    findings.add(Rule::NegativeDur, self.place);
                }
                // Nothing is drawn at the time of metadata, and only spans have a duration.
                if is_off(ts) && phase != b'M' || is_off(dur) && phase == b'X' {
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
            b'b' | b'n' | b'e' if self.async_key(phase).is_none() => lost(Rule::AsyncWithoutId),
            b'b' => Some(Act::Begin(self.words(NO_NAME))),
            b'e' => Some(Act::End(self.words(b""))),
            b'n' => Some(Act::Span(0)),
            b'C' => {
                match bad_values(self.fields.args.of(self.text)) {
                    Some(count) => findings.add_many(Rule::CounterValue, count, &[self.place]),
                    None => findings.add(Rule::CounterEndless, self.place),
                }
                None
            }
            // Where clocks meet, which no viewer draws.
            phase if is_shown(phase) => None,
            _ => lost(Rule::UnknownPhase),
        }
    }

    /// What puts an async event on its track; nothing if it is none, or names no id or process.
    fn async_key(&self, phase: u8) -> Option<Key> {
        let fields = self.fields;
        let pid = Id::of(fields.pid.of(self.text));
        match phase {
            b'b' | b'n' | b'e' if pid != Id::Absent => {
                async_key(self.text, fields.id, fields.id2, fields.cat, pid)
            }
            _ => None,
        }
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

    /// The value of a member that only some events need.
    fn member(&self, key: &str) -> &[u8] {
        member(&self.text[self.range.clone()], key.as_bytes())
    }

    /// Whether an instant lies on a thread; those of a process or of all are drawn elsewhere.
    fn instant(&self) -> Result<bool, Rule> {
        let is_there = |id: Span| Id::of(id.of(self.text)) != Id::Absent;
        let (is_of_thread, is_drawn) = match self.member("s") {
            b"\"g\"" => (false, true),
            b"\"p\"" => (false, is_there(self.fields.pid)),
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
