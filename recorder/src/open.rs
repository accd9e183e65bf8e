//! Open spans → `B` lines, when the thread or the recording ends before they do.

use std::sync::atomic::Ordering;

use crate::encode::string;
use crate::flush;
use crate::format::LANE_BASE;
use crate::format::ring as layout;
use crate::process::Process;
use crate::slot::{OpenEntry, Slot};
use crate::value::MAX_STRING_BYTES;

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
    for (lane, entry) in process
        .ring
        .lane_entries()
        .filter(|(_, entry)| entry.start().load(Ordering::Acquire) != 0)
    {
        let line = line(
            process,
            entry,
            LANE_BASE + lane,
            layout::LANE_NAME_AT,
            layout::LANE_NAME_BYTES,
        );
        process.tell_closing(&line, entry);
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
