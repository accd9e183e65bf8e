//! Writes an event line with other times and ids, and everything else unchanged.

use crate::event::Event;
use crate::flow;
use crate::json::Fields;
use crate::mend::{mend_line, mended_event};
use crate::profile;
use sa_format::Phase;
use std::ops::Deref;
use trace_base::number::{Micros, micros, put_front, put_short, write_micros};

/// Process and thread of events in the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Output process id.
    pub pid: Id,
    /// Output thread id.
    pub tid: Id,
    /// Ordinal of the process, which is the scope of its flow ids.
    pub ordinal: u64,
}

/// An id in the trace, stored as decimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    text: [u8; 16],
    len: usize,
}

impl From<u32> for Id {
    fn from(id: u32) -> Id {
        let (mut text, mut buffer) = ([0; 16], itoa::Buffer::new());
        let digits = buffer.format(id).as_bytes();
        text[..digits.len()].copy_from_slice(digits);
        Id {
            text,
            len: digits.len(),
        }
    }
}

impl Id {
    /// Returns the id as a number.
    pub fn number(self) -> u32 {
        let digit = |number: u32, digit: &u8| number * 10 + u32::from(digit - b'0');
        self.iter().fold(0, digit)
    }
}

impl Deref for Id {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.text[..self.len]
    }
}

#[derive(Clone, Copy)]
enum Edit {
    Pid,
    MissingTid,
    Tid,
    Ts,
    Dur,
    Id(u64),
    BindId(u64),
    OtherId,
}

/// Up to seven edits of a line, in order. Each has a start, an end and a kind.
struct Edits {
    list: [(usize, usize, Edit); 7],
    len: usize,
}

impl Edits {
    #[inline(always)]
    fn add(&mut self, start: usize, end: usize, edit: Edit) {
        let mut at = self.len;
        while at > 0 && self.list[at - 1].0 > start {
            self.list[at] = self.list[at - 1];
            at -= 1;
        }
        self.list[at] = (start, end, edit);
        self.len += 1;
    }
}

/// Appends the line with the ids of `target` and its time moved by `shift_ns`. The moved time must not be negative.
#[inline]
pub fn write_line(event: &Event<'_>, target: &Target, shift_ns: i64, out: &mut Vec<u8>) {
    if event.phase == Phase::Sample {
        return write_profile(event, target, shift_ns, out);
    }
    if changes_only_ids_and_time(event) {
        let ts_ns = shifted(event.ts_ns, shift_ns);
        return write_in_order(event, target, ts_ns, out);
    }
    let start = out.len();
    match event.fields.odd {
        true => write_mended(event, target, shift_ns, out),
        false => write_edits(event, target, shift_ns, out),
    }
    if event.fields.is_mended() {
        mend_line(out, start);
    }
}

/// Appends a line without the members and values that viewers refuse.
#[cold]
fn write_mended(event: &Event<'_>, target: &Target, shift_ns: i64, out: &mut Vec<u8>) {
    let mended = mended_event(event.line, event.phase).map(|(text, _)| text);
    let line = mended.as_deref().unwrap_or(event.line);
    write_edits(&event.in_line(line), target, shift_ns, out);
}

/// Appends an event of a V8 CPU profile (`P`), which also has a time in its args.
#[cold]
fn write_profile(event: &Event<'_>, target: &Target, shift_ns: i64, out: &mut Vec<u8>) {
    let from_ns = micros(event.fields.ts.slice(event.line)).map_or(event.ts_ns, Micros::ns);
    let moved_ns = (event.ts_ns + shift_ns).saturating_sub(from_ns);
    let line = profile::with_moved_time(event.line, moved_ns);
    write_mended(&event.in_line(&line), target, shift_ns, out);
}

/// Returns the time of the event in the trace.
#[inline(always)]
pub fn shifted(ts_ns: i64, shift_ns: i64) -> u64 {
    rounded_for_viewers((ts_ns + shift_ns).max(0).unsigned_abs())
}

/// Rounds a time down to the precision of viewers. From 104 days on, a double cannot store single nanoseconds, so the time becomes whole microseconds.
#[inline(always)]
fn rounded_for_viewers(ns: u64) -> u64 {
    match is_exact(ns) {
        true => ns,
        false => ns - ns % 1000,
    }
}

/// Returns true if a double can store this time exactly.
#[inline(always)]
pub(crate) fn is_exact(ns: u64) -> bool {
    ns < 1 << 53
}

fn write_edits(event: &Event<'_>, target: &Target, shift_ns: i64, out: &mut Vec<u8>) {
    let edits = planned_edits(event, target);
    let mut copied = 0;
    for (start, end, edit) in &edits.list[..edits.len] {
        out.extend_from_slice(&event.line[copied..*start]);
        copied = *end;
        match edit {
            Edit::Pid => out.extend_from_slice(&target.pid),
            Edit::Tid => out.extend_from_slice(&target.tid),
            Edit::MissingTid => {
                out.extend_from_slice(br#","tid":"#);
                out.extend_from_slice(&target.tid);
            }
            Edit::Ts => write_micros(shifted(event.ts_ns, shift_ns), out),
            Edit::Dur => write_micros(rounded_for_viewers(event.dur_ns.unsigned_abs()), out),
            Edit::Id(id) => flow::write_id("id", *id, out),
            Edit::BindId(id) => flow::write_id("bind_id", *id, out),
            Edit::OtherId => out.extend_from_slice(br#""id_""#),
        }
    }
    out.extend_from_slice(&event.line[copied..]);
}

/// Returns the separator before each event and the beginning of a canonical event up to its time, with the ids of `target`.
pub fn front(event: &Event<'_>, target: &Target) -> Vec<u8> {
    let Fields { ts, pid, tid, .. } = event.fields;
    let mut front = Vec::with_capacity(ts.start + 2 * size_of::<Id>());
    front.extend_from_slice(b",\n");
    front.extend_from_slice(&event.line[..pid.start]);
    front.extend_from_slice(&target.pid);
    front.extend_from_slice(&event.line[pid.end..tid.start]);
    front.extend_from_slice(&target.tid);
    front.extend_from_slice(&event.line[tid.end..ts.start]);
    front
}

/// Returns true if only the ids and the time change, and the time is before or after both ids. This holds for nearly all lines of all recorders.
#[inline(always)]
fn changes_only_ids_and_time(event: &Event<'_>) -> bool {
    let Fields { ts, pid, tid, .. } = event.fields;
    let time_outside = ts.end < pid.start || tid.end < ts.start;
    let in_order = pid.end < tid.start && time_outside;
    let has_id = event.phase.has_id() || event.fields.bind_id.is_some();
    let as_written = !event.rounds_dur && !event.fields.is_mended();
    in_order && !event.is_metadata() && as_written && !has_id
}

/// Appends a line with other ids and another time, without a list of edits, which would take as long as all the copying.
#[inline(always)]
fn write_in_order(event: &Event<'_>, target: &Target, ts_ns: u64, out: &mut Vec<u8>) {
    let (line, Fields { ts, pid, tid, .. }) = (event.line, event.fields);
    let time_first = ts.start < pid.start;
    if time_first {
        out.extend_from_slice(&line[..ts.start]);
        write_micros(ts_ns, out);
        put_short(line, ts.end..pid.start, out);
    } else {
        put_short(line, 0..pid.start, out);
    }
    put_front(&target.pid.text, target.pid.len, out);
    put_short(line, pid.end..tid.start, out);
    put_front(&target.tid.text, target.tid.len, out);
    let mut copied = tid.end;
    if !time_first {
        put_short(line, tid.end..ts.start, out);
        write_micros(ts_ns, out);
        copied = ts.end;
    }
    out.extend_from_slice(&line[copied..]);
}

#[inline(always)]
fn planned_edits(event: &Event<'_>, target: &Target) -> Edits {
    let fields = &event.fields;
    let mut edits = Edits {
        list: [(0, 0, Edit::Pid); 7],
        len: 0,
    };
    edits.add(fields.pid.start, fields.pid.end, Edit::Pid);
    if fields.tid.is_some() {
        edits.add(fields.tid.start, fields.tid.end, Edit::Tid);
    } else {
        edits.add(fields.pid.end, fields.pid.end, Edit::MissingTid);
    }
    if !event.is_metadata() {
        edits.add(fields.ts.start, fields.ts.end, Edit::Ts);
    }
    if event.rounds_dur {
        edits.add(fields.dur.start, fields.dur.end, Edit::Dur);
    }
    if event.phase.has_id()
        && let Some((id, from)) = flow::trace_id(event, target.ordinal)
    {
        edits.add(from.start, from.end, Edit::Id(id));
        let (other, key) = if from == fields.id {
            (fields.id2, r#""id2""#)
        } else {
            (fields.id, r#""id""#)
        };
        if other.is_some() {
            edits.add(other.start, other.start + key.len(), Edit::OtherId);
        }
    }
    if fields.bind_id.is_some() {
        let id = flow::trace_bind_id(event, target.ordinal);
        edits.add(fields.bind_id.start, fields.bind_id.end, Edit::BindId(id));
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{parse, parse_canonical};

    fn patched(line: &str) -> String {
        let target = Target {
            pid: 7.into(),
            tid: 8.into(),
            ordinal: 0,
        };
        let event = parse(line.as_bytes()).expect("an event");
        let (mut out, mut with_edits) = (Vec::new(), Vec::new());
        write_line(&event, &target, -1_000, &mut out);
        write_edits(&event, &target, -1_000, &mut with_edits);
        assert!(
            event.fields.odd || with_edits == out,
            "both ways must write the same bytes"
        );
        if let Some(event) = parse_canonical(line.as_bytes()) {
            let mut fast = Vec::new();
            write_line(&event, &target, -1_000, &mut fast);
            assert_eq!(fast, out, "both parsers must lead to the same bytes");
        }
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn replaces_only_times_and_ids() {
        // Pairs of lines: an event and the expected result.
        let table = include_str!("../tests/patched.txt");
        let lines: Vec<&str> = table.lines().collect();
        for pair in lines.chunks(2) {
            assert_eq!(patched(pair[0]), pair[1]);
        }
    }
}
