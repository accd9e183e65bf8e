//! Open spans → `B` lines, when the thread or the recording ends before they do.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use crate::encode::string;
use crate::flush;
use crate::format::LANE_BASE;
use crate::format::ring as layout;
use crate::process::Process;
use crate::slot::{OpenEntry, Slot};
use crate::value::MAX_STRING_BYTES;
use crate::wait;

/// Writes the spans open on a slot's thread as unfinished ones and empties its stack, in one store. The caller owns the slot.
pub(crate) fn close_stack(process: &Process, slot: &Slot) {
    let depth = slot.depth().min(layout::STACK_DEPTH);
    let tid = slot.tid().load(Ordering::Relaxed);
    let entries = (0..depth).map(|at| slot.open_entry(at));
    let lines: Vec<u8> = entries
        .filter(|entry| entry.start().load(Ordering::Relaxed) != 0)
        .flat_map(|entry| {
            line(
                process,
                entry,
                tid,
                layout::STACK_NAME_AT,
                layout::STACK_NAME_BYTES,
            )
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
        let line = line(
            process,
            open.entry,
            LANE_BASE + open.row,
            layout::LANE_NAME_AT,
            layout::LANE_NAME_BYTES,
        );
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
    let mut rows = HashMap::new();
    for open in &mut open {
        let parent = open.entry.parent().load(Ordering::Relaxed).checked_sub(1);
        let row = parent.and_then(|parent| rows.get(&parent).copied());
        open.row = row.unwrap_or(open.lane);
        rows.insert(open.lane, open.row);
    }
    open
}

/// Names the row of a span whose parent has ended.
fn name_row(process: &Process, lane: u32) {
    let untold = wait::lock(&process.lanes).and_then(|mut lanes| lanes.untold(lane));
    if let Some(name) = untold {
        process.name_lane(lane, &name);
    }
}

fn line(
    process: &Process,
    entry: OpenEntry,
    tid: u32,
    name_at: usize,
    name_room: usize,
) -> Vec<u8> {
    let start_ns = entry.start().load(Ordering::Relaxed);
    let names = process
        .ring
        .site_text(entry.site().load(Ordering::Relaxed))
        .unwrap_or_else(|| {
            let mut names = b"\"name\":".to_vec();
            string(
                &mut names,
                &entry.name(name_at, name_room),
                MAX_STRING_BYTES,
            );
            names.extend_from_slice(br#","cat":"""#);
            names
        });
    let mut line = format!(
        r#"{{"ph":"B","pid":{},"tid":{tid},"ts":{}.{:03},"#,
        process.pid,
        start_ns / 1000,
        start_ns % 1000
    )
    .into_bytes();
    line.extend_from_slice(&names);
    line.extend_from_slice(b",\"args\":{\"unfinished\":true}}\n");
    line
}
