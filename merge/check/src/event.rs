//! Checks one event, and adds it to its track.
//!
//! In: the text of an event. Out: the rules that the event breaks on its own, and its effect on its track, for the [`timeline`](crate::timeline).
//! `trace_event::member` defines the values of members that viewers accept. The merge mends events by the same definition.

use crate::id::{arrow, async_track, member, text_hash, thread_id, thread_track};
use crate::report::{CheckReport, Findings, Rule};
use crate::timeline::{Item, Kind, Timeline};
use sa_format::Phase;
use std::io;
use std::path::Path;
use trace_base::number::{Micros, micros};
use trace_event::json::{Fields, Members, ends_in_backslash, scan_object};
use trace_event::member::{Fault, breaks_import, fault, is_time, parse_phase};

/// The events of a trace.
pub(crate) struct Events<'a, 'f> {
    text: &'a [u8],
    count: u64,
    timeline: Timeline<'f>,
    pub(crate) findings: Findings<'a>,
}

/// An event.
struct Event<'a> {
    text: &'a [u8],
    offset: u64,
    fields: Fields,
    /// `None` if viewers do not know it.
    phase: Option<Phase>,
}

impl<'a, 'f> Events<'a, 'f> {
    /// Creates an empty list. Items that do not fit into memory are stored in files in `folder`.
    pub(crate) fn new(text: &'a [u8], folder: &'f Path) -> Events<'a, 'f> {
        Events {
            text,
            count: 0,
            timeline: Timeline::new(folder),
            findings: Findings::new(text),
        }
    }

    /// Checks an event, which must be a part of the text. Returns the offset after it.
    pub(crate) fn add(&mut self, text: &'a [u8]) -> io::Result<usize> {
        let start = text.as_ptr().addr() - self.text.as_ptr().addr();
        let offset = start as u64;
        self.count += 1;
        if let Some(fields) = scan_object(text) {
            self.check(&Event {
                text,
                offset,
                fields,
                phase: parse_phase(fields.ph.slice(text)).and_then(Phase::from_byte),
            })?;
        } else if text.starts_with(b"{") {
            self.findings.add(Rule::NestedJson, offset);
        } else {
            let problem = "expected an event, which begins with {";
            self.findings.add_text(Rule::NotATrace, offset, problem);
        }
        Ok(start + text.len())
    }

    fn check(&mut self, event: &Event<'_>) -> io::Result<()> {
        event.check_members(&mut self.findings);
        match event.phase {
            None => self.findings.add(Rule::BadPhase, event.offset),
            Some(Phase::Metadata) => {}
            Some(phase) => match event.times() {
                Ok(Some(times)) => self.add_to_tracks(event, phase, times)?,
                Ok(None) => {}
                Err(rule) => self.findings.add(rule, event.offset),
            },
        }
        Ok(())
    }

    /// Adds the event to its track, and to its arrow if it belongs to one.
    fn add_to_tracks(
        &mut self,
        event: &Event<'_>,
        phase: Phase,
        (ts, dur): (i64, i64),
    ) -> io::Result<()> {
        let (text, fields) = (event.text, &event.fields);
        let (is_async, is_flow) = (phase.is_async(), phase.is_flow());
        let ids = [fields.pid, fields.tid].map(|id| thread_id(id.slice(text)));
        let needed = if is_async || phase == Phase::Counter {
            1
        } else {
            2
        };
        if ids[..needed].contains(&None) {
            self.findings.add(Rule::BadThread, event.offset);
        }
        let [pid, tid] = ids.map(Option::unwrap_or_default);
        let track = match is_async {
            true => async_track(text, fields, pid),
            false => Some(thread_track(pid, tid)),
        };
        let arrow = arrow(text, fields).filter(|_| is_flow);
        let (Some(track), true) = (track, is_flow == arrow.is_some()) else {
            self.findings.add(Rule::BadId, event.offset);
            return Ok(());
        };
        let item = |track, kind| Item::new(track, ts, kind, event.offset);
        if let Some(kind) = event.kind(phase) {
            let hashes = [fields.name, fields.cat].map(|field| text_hash(field.slice(text)));
            self.timeline.add(item(track, kind).with(dur, hashes))?;
        }
        let Some(arrow) = arrow else { return Ok(()) };
        let kind = match phase {
            Phase::FlowStart => Kind::Start,
            _ => Kind::StepOrEnd,
        };
        self.timeline.add(item(arrow, kind))
    }

    /// Checks all tracks after all events were added.
    pub(crate) fn finish(mut self, file: &Path) -> io::Result<CheckReport> {
        self.timeline.finish(&mut self.findings)?;
        Ok(self.findings.report(file, self.count))
    }
}

impl Event<'_> {
    /// Checks each member separately.
    fn check_members(&self, findings: &mut Findings<'_>) {
        let (text, fields) = (self.text, &self.fields);
        if fields.odd_escapes && ends_in_backslash(text) {
            findings.add(Rule::BadEscape, self.offset);
        }
        let pids = Members::new(text).filter(|(key, _)| *key == b"pid");
        if fields.repeated && breaks_import(pids.map(|(_, value)| value)) {
            findings.add(Rule::PidTwice, self.offset);
        }
        let name = fields.name.slice(text);
        for (key, value) in Members::new(text) {
            let rule = match fault(self.phase, name, key, value) {
                Some(Fault::Number | Fault::ArgsNumber) => Rule::BadNumber,
                Some(Fault::Time) => Rule::BadTime,
                Some(Fault::NegativeTime) => Rule::NegativeTime,
                Some(Fault::Id2) => Rule::BadId,
                Some(Fault::Surrogate) => Rule::BadEscape,
                Some(Fault::Name) | None => continue,
            };
            findings.add(rule, self.offset);
        }
    }

    /// Returns time and duration in ns, or `None` if one is not a number, which [`Event::check_members`] reports.
    fn times(&self) -> Result<Option<(i64, i64)>, Rule> {
        let times = [self.fields.ts, self.fields.dur].map(|time| time.slice(self.text));
        // Only complete spans need a duration.
        let times = &times[..1 + usize::from(self.phase == Some(Phase::Complete))];
        if times.contains(&&b""[..]) {
            return Err(Rule::NoTime);
        }
        if !times.iter().all(|time| is_time(time)) {
            return Ok(None);
        }
        let ns = |time: Option<&&[u8]>| time.map_or(Some(0), |time| micros(time).map(Micros::ns));
        match (ns(times.first()), ns(times.get(1))) {
            (Some(ts @ 0..), Some(dur @ 0..)) => Ok(Some((ts, dur))),
            _ => Err(Rule::NegativeTime),
        }
    }

    /// Returns the effect of the event on its track.
    fn kind(&self, phase: Phase) -> Option<Kind> {
        Some(match phase {
            Phase::Complete
            | Phase::Instant
            | Phase::LegacyInstant
            | Phase::Mark
            | Phase::AsyncInstant => Kind::Span,
            Phase::Begin | Phase::AsyncBegin => Kind::Begin,
            Phase::End => Kind::End,
            Phase::AsyncEnd => Kind::AsyncEnd,
            Phase::FlowEnd if member(self.text, b"bp") != b"\"e\"" => Kind::BindNext,
            Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd => Kind::Bind,
            Phase::Counter | Phase::Metadata | Phase::ClockSync | Phase::Sample => return None,
        })
    }
}
