//! Where the spans of some threads begin and end, and what belongs to them, in the order in which viewers take events.

use crate::event::line::Event;
use crate::pass::event_ref::EventRef;
use crate::pass::thread::RecordedThread;
use crate::span::lane_event::LaneEvent;
use crate::span::matcher::join;
use crate::span::span_half::SpanHalf;
use crate::span::thread_scan::ThreadScan;
use crate::store::sorter::{Sorted, Sorter};
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// What an event of a thread is.
enum LanePart {
    Whole(LaneEvent),
    Half(SpanHalf<u32>),
}

/// All that happens on the threads that `rows` numbers; what is too much for memory goes to files in `folder`.
pub(crate) fn lane_events(
    scan: &ThreadScan<'_>,
    rows: &HashMap<RecordedThread, u32>,
    folder: &Path,
) -> io::Result<Sorted<LaneEvent>> {
    let (mut events, mut halves) = (Sorter::new(folder), Sorter::new(folder));
    let part = |thread: RecordedThread, at: EventRef, event: &Event<'_>| {
        let (row, shift_ns) = (*rows.get(&thread)?, scan.shifts_ns[thread.0]);
        let half = SpanHalf::of(event, row, at, shift_ns).map(LanePart::Half);
        half.or_else(|| LaneEvent::of(event, row, at, shift_ns).map(LanePart::Whole))
    };
    scan.each(rows.keys().copied(), part, |part| match part {
        LanePart::Half(half) => halves.push(half),
        LanePart::Whole(event) => events.push(event),
    })?;
    let halves = halves.finish()?;
    join(&halves, |begin, end| {
        events.push(LaneEvent::begun(begin, end.map(|end| (end.start, end.at))))
    })?;
    drop(halves);
    events.finish()
}
