//! Where the spans of some threads begin and end, and what belongs to them, in the order in which viewers take events.

use crate::event::line::Event;
use crate::pass::chunk::EventRef;
use crate::span::end_args::EndArgs;
use crate::span::group_key::GroupKey;
use crate::span::lane_event::LaneEvent;
use crate::span::matcher::join;
use crate::span::span_half::{ArgsPlace, Side, SpanHalf};
use crate::span::thread_scan::ThreadScan;
use crate::store::sorter::{Sorted, Sorter};
use crate::summary::thread::RecordedThread;
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// What an event of a thread is.
enum LanePart {
    Whole(LaneEvent),
    Half(SpanHalf),
}

/// Events of some threads.
pub(crate) struct LaneEvents {
    pub(crate) events: Sorted<LaneEvent>,
    /// Args of ends that are added to their begins.
    pub(crate) end_args: Sorted<EndArgs>,
}

/// All that happens on the threads that `rows` numbers; what is too much for memory goes to files in `folder`.
///
/// A begin and an end at the same time become a complete span, because a viewer would process the end first.
pub(crate) fn lane_events(
    scan: &ThreadScan<'_>,
    rows: &HashMap<RecordedThread, u32>,
    folder: &Path,
) -> io::Result<LaneEvents> {
    let (mut events, mut halves) = (Sorter::new(folder), Sorter::new(folder));
    let source = |at: EventRef| scan.chunks[at.chunk as usize].source;
    let part = |thread: RecordedThread, at: EventRef, event: &Event<'_>| {
        let (row, shift_ns) = (*rows.get(&thread)?, scan.shifts_ns[thread.0]);
        let Some(half) = SpanHalf::of(event, row, at, shift_ns) else {
            return LaneEvent::of(event, row, at, shift_ns).map(LanePart::Whole);
        };
        let args = match half.side {
            Side::Begin => ArgsPlace::default(),
            Side::End => ArgsPlace::of(event, scan.sources[source(at)].bytes),
        };
        Some(LanePart::Half(SpanHalf { args, ..half }))
    };
    scan.each(rows.keys().copied(), part, |part| match part {
        LanePart::Half(half) => halves.push(half),
        LanePart::Whole(event) => events.push(event),
    })?;
    let halves = halves.finish()?;
    let mut end_args = Sorter::new(folder);
    join(&halves, |begin, end| {
        let end_now = end.filter(|end| end.start == begin.start);
        if let Some(end) = end_now.filter(|end| !end.args.is_empty()) {
            end_args.push(EndArgs {
                begin: begin.at,
                source: u32::try_from(source(end.at)).map_err(io::Error::other)?,
                args: end.args,
            })?;
        }
        let end = end.map(|end| (end.start, end.at));
        match begin.row {
            GroupKey::Thread(row) => {
                events.push(LaneEvent::begun(row, begin, end, end_now.is_some()))
            }
            GroupKey::Async(..) | GroupKey::Flow(..) => Ok(()),
        }
    })?;
    drop(halves);
    Ok(LaneEvents {
        events: events.finish()?,
        end_args: end_args.finish()?,
    })
}
