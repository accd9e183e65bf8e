//! Open spans → `B` lines, when the thread or the recording ends before they do.

use std::sync::atomic::Ordering;

use crate::format::LANE_BASE;
use crate::format::ring::{self as layout, SpanText};
use crate::process::flush;
use crate::process::state::Process;
use crate::ring::open_entry::OpenEntry;
use crate::ring::slot::Slot;
use crate::ring::text_area::TextArea;
use crate::sys::memory::{leave_out, reserve};
use crate::text::line::{self, Place};
use crate::text::name::write_name;
use crate::text::value;

/// Marks a span without an end.
const UNFINISHED: &str = "unfinished";

/// Writes the spans open on a slot's thread as unfinished ones and empties its stack, in one store. The caller owns the slot.
pub(crate) fn close_stack(process: &Process, slot: &'static Slot) {
    let depth = slot.depth().min(layout::STACK_DEPTH);
    let tid = slot.tid().load(Ordering::Relaxed);
    let entries = (0..depth).map(|at| slot.open_entry(at));
    let mut lines = Vec::new();
    for entry in entries.filter(|entry| entry.start().load(Ordering::Relaxed) != 0) {
        let name = || entry.name(layout::STACK_NAME_AT, layout::STACK_NAME_BYTES);
        let line = line(process, entry, tid, Some(slot.text), name);
        if reserve(&mut lines, line.len()) {
            lines.extend_from_slice(&line);
        }
    }
    if depth > 0 && process.make_room(slot, lines.len() as u64) {
        flush::append(slot, slot.head(), &lines, 0);
    }
}

/// Writes everything that is open in a process that no longer records as unfinished.
pub(crate) fn close_all(process: &Process) {
    for slot in process.ring.slots() {
        close_stack(process, slot);
    }
    for open in open_lanes(process) {
        if open.row == open.lane {
            name_row(process, open.lane);
        }
        let name = || {
            open.entry
                .name(layout::LANE_NAME_AT, layout::LANE_NAME_BYTES)
        };
        let area = process.ring.lane_text(open.lane);
        let line = line(process, open.entry, LANE_BASE + open.row, area, name);
        process.tell_closing(&line, open.entry);
    }
}

/// A span that is open on a lane.
struct OpenLane {
    lane: u32,
    entry: OpenEntry,
    start_ns: u64,
    /// The lane it is shown on: that of the outermost span it lies in.
    row: u32,
}

/// What is open on lanes, in the order in which it began.
fn open_lanes(process: &Process) -> Vec<OpenLane> {
    let mut open: Vec<OpenLane> = Vec::new();
    for (lane, entry) in process.ring.lane_entries() {
        let start_ns = entry.start().load(Ordering::Acquire);
        if start_ns == 0 {
            continue;
        }
        if open.try_reserve(1).is_err() {
            leave_out();
            continue;
        }
        open.push(OpenLane {
            lane,
            entry,
            start_ns,
            row: lane,
        });
    }
    open.sort_unstable_by_key(|open| open.start_ns); // no two begin at the same time
    find_rows(&mut open);
    open
}

fn find_rows(open: &mut [OpenLane]) {
    for at in 0..open.len() {
        let (before, rest) = open.split_at_mut(at);
        let Some(own) = rest.first_mut() else {
            continue;
        };
        let parent = own.entry.parent().load(Ordering::Relaxed).checked_sub(1);
        let parent = parent.and_then(|lane| before.iter().find(|open| open.lane == lane));
        own.row = parent.map_or(own.lane, |parent| parent.row);
    }
}

/// Names the row of a lane if that is not told yet.
#[cold]
pub(crate) fn name_row(process: &Process, lane: u32) {
    let untold = process
        .lanes
        .lock()
        .and_then(|mut lanes| lanes.untold(lane));
    if let Some(name) = untold {
        process.name_lane(lane, &name);
    }
}

/// The line of an open span; `name` is what its entry has as its name.
fn line(
    process: &Process,
    entry: OpenEntry,
    tid: u32,
    area: Option<TextArea>,
    name: impl FnOnce() -> String,
) -> Vec<u8> {
    let start_ns = entry.start().load(Ordering::Relaxed);
    let text = SpanText::of_word(entry.text().load(Ordering::Relaxed));
    let part = |range| area.and_then(|area| area.get(range));
    let site = process.ring.site_text(entry.site().load(Ordering::Relaxed));
    let names = site.or_else(|| part(text.names())).unwrap_or_else(|| {
        let mut names = Vec::new();
        write_name(&mut names, "", &name());
        names
    });
    if names.is_empty() {
        return names; // no memory, and counted
    }
    let mut args = part(text.args()).unwrap_or_default();
    let first = args.is_empty();
    value::push_after(&mut args, first, UNFINISHED, &true);
    let place = Place {
        pid: process.pid,
        tid,
        ts_ns: start_ns,
        duration_ns: None,
    };
    line::line(b'B', &place, b"", &names, &args)
}
