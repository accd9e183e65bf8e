//! Open spans → `B` lines, when the thread or the recording ends before they do.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use crate::encode;
use crate::flush;
use crate::format::LANE_BASE;
use crate::format::ring::{self as layout, SpanText};
use crate::line::{self, Place};
use crate::process::Process;
use crate::slot::{OpenEntry, Slot, TextArea};
use crate::value::{self, MAX_STRING_BYTES};

/// Marks a span without an end.
const UNFINISHED: &str = "unfinished";

/// Writes the spans open on a slot's thread as unfinished ones and empties its stack, in one store. The caller owns the slot.
pub(crate) fn close_stack(process: &Process, slot: &'static Slot) {
    let depth = slot.depth().min(layout::STACK_DEPTH);
    let tid = slot.tid().load(Ordering::Relaxed);
    let entries = (0..depth).map(|at| slot.open_entry(at));
    let lines: Vec<u8> = entries
        .filter(|entry| entry.start().load(Ordering::Relaxed) != 0)
        .flat_map(|entry| {
            let name = || entry.name(layout::STACK_NAME_AT, layout::STACK_NAME_BYTES);
            line(process, entry, tid, Some(slot.text), name)
        })
        .collect();
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
    let mut open: Vec<OpenLane> = process
        .ring
        .lane_entries()
        .map(|(lane, entry)| OpenLane {
            lane,
            entry,
            start_ns: entry.start().load(Ordering::Acquire),
            row: lane,
        })
        .filter(|open| open.start_ns != 0)
        .collect();
    open.sort_by_key(|open| open.start_ns);
    let mut rows = BTreeMap::new(); // a hash map needs random bytes, and panics without
    for open in &mut open {
        let parent = open.entry.parent().load(Ordering::Relaxed).checked_sub(1);
        let row = parent.and_then(|parent| rows.get(&parent).copied());
        open.row = row.unwrap_or(open.lane);
        rows.insert(open.lane, open.row);
    }
    open
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
        let mut names = b"\"name\":".to_vec();
        encode::name(&mut names, &name(), MAX_STRING_BYTES);
        names.extend_from_slice(br#","cat":"""#);
        names
    });
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
