//! Writes open spans as `B` lines when the thread or the recording ends before they do.

use std::sync::atomic::Ordering;

use crate::process::flush;
use crate::process::state::Process;
use crate::ring::open_entry::{LANE_NAME, OpenEntry, STACK_NAME};
use crate::ring::slot::Slot;
use crate::ring::text_area::TextArea;
use crate::sys::memory::reserve;
use crate::text::line::begin_line;
use crate::text::name::write_name;
use crate::text::value;
use sa_format::LANE_BASE;
use sa_format::loss::Cause;
use sa_format::ring::{self as layout, SpanText};

/// Arg that marks a span without an end.
const UNFINISHED: &str = "unfinished";

/// Writes the spans that are still open on a slot's thread as unfinished, and empties the slot's
/// stack of open spans. Writes as many as the ring has room for, the innermost first. One store
/// publishes their lines and removes them from the stack. The caller owns the slot.
pub(crate) fn close_stack(process: &Process, slot: &'static Slot) {
    let mut depth = slot.entries_in_use();
    while depth > 0 {
        let (from, lines) = innermost(process, slot, depth);
        if !process.make_room(slot, lines.len() as u64) {
            let open = (0..depth)
                .filter_map(|at| Some((at, slot.open_entry(at)?)))
                .filter(|(at, entry)| slot.is_open(*at, *entry));
            open.for_each(|_| process.lost.count(Cause::Busy));
            return;
        }
        let head = slot.head();
        let end = head + lines.len() as u64;
        // A state cannot express which spans are open beyond its largest depth.
        for at in from.max(layout::MAX_DEPTH)..depth {
            if let Some(entry) = slot.open_entry(at) {
                entry.close_with(slot.index, end);
            }
        }
        let left = from.min(layout::MAX_DEPTH) as u64;
        flush::append(slot, head, &lines, left);
        depth = from;
    }
}

/// Builds the lines of a thread's innermost open spans, until they fill a quarter of the ring area.
/// Starts with the span just below depth `depth`. Returns the depth of the outermost of these
/// spans, and the lines.
fn innermost(process: &Process, slot: &'static Slot, depth: usize) -> (usize, Vec<u8>) {
    let tid = slot.tid().load(Ordering::Relaxed);
    let most = usize::try_from(slot.bytes / 4).unwrap_or(0);
    let (mut from, mut lines) = (depth, Vec::new());
    while from > 0 && lines.len() < most {
        from -= 1;
        let entry = slot.open_entry(from);
        let Some(entry) = entry.filter(|entry| slot.is_open(from, *entry)) else {
            continue;
        };
        let name = match from {
            0..layout::STACK_DEPTH => STACK_NAME,
            _ => LANE_NAME,
        };
        let line = line(process, entry, tid, slot.text_area(from), name);
        if reserve(&mut lines, line.len()) {
            lines.extend_from_slice(&line);
        }
    }
    (from, lines)
}

/// Writes all spans of a process that are still open, on threads and on lanes, as unfinished.
/// Called when recording has ended.
pub(crate) fn close_all(process: &Process) {
    for slot in process.ring.slots() {
        close_stack(process, slot);
    }
    for open in open_lanes(process) {
        record_lane_name(process, open.shown_lane);
        let area = process.ring.lane_text(open.lane);
        let line = line(
            process,
            open.entry,
            LANE_BASE + open.shown_lane,
            area,
            LANE_NAME,
        );
        process.append_own_closing(&line, open.entry);
    }
    process.report_hidden_spans();
}

/// A span that is open on a lane.
struct OpenLane {
    lane: u32,
    entry: OpenEntry,
    start_ns: u64,
    /// Lane that it is shown on: the lane of the outermost span around it.
    shown_lane: u32,
}

/// Returns the async spans that are open on lanes (virtual threads), in the order in which they
/// began.
fn open_lanes(process: &Process) -> Vec<OpenLane> {
    let mut open: Vec<OpenLane> = Vec::new();
    let lanes = process.lanes.lock();
    for (lane, entry) in process.ring.lane_entries() {
        let start_ns = entry.start().load(Ordering::Acquire);
        if start_ns == 0 || !reserve(&mut open, 1) {
            continue;
        }
        open.push(OpenLane {
            lane,
            entry,
            start_ns,
            shown_lane: lanes.as_ref().map_or(lane, |lanes| lanes.shown_lane(lane)),
        });
    }
    open.sort_unstable_by_key(|open| open.start_ns); // no two spans start at the same time
    open
}

/// Records the name of a lane (a virtual thread, on which async spans are shown), if the trace does
/// not contain it yet.
#[cold]
pub(crate) fn record_lane_name(process: &Process, lane: u32) {
    let lanes = process.lanes.lock();
    if let Some(name) = lanes.and_then(|mut lanes| lanes.unwritten_name(lane)) {
        process.name_lane(lane, &name);
    }
}

/// Builds the line of an open span, whose end is missing. Its texts are in `area`, or `entry`
/// stores its name in the words `name`.
fn line(
    process: &Process,
    entry: OpenEntry,
    tid: u32,
    area: Option<TextArea>,
    name: (usize, usize),
) -> Vec<u8> {
    let start_ns = entry.start().load(Ordering::Relaxed);
    let text = SpanText::from_bits(entry.text().load(Ordering::Relaxed));
    let part = |range| area.and_then(|area| area.get(range));
    let site = process.ring.site_text(entry.site().load(Ordering::Relaxed));
    let names = site.or_else(|| part(text.names())).unwrap_or_else(|| {
        let mut names = Vec::new();
        write_name(&mut names, "", &entry.name(name));
        names
    });
    if names.is_empty() {
        return names; // not enough memory, which is counted
    }
    let mut args = part(text.args()).unwrap_or_default();
    let first = args.is_empty();
    value::push_after(&mut args, first, UNFINISHED, &true);
    begin_line((process.pid, tid), start_ns, &names, &args)
}
