//! Where the spans of some threads begin and end, and what belongs to them, in the order in which viewers take events.

use crate::base::span_stack::UNFINISHED;
use crate::event::flow::binds_to_next;
use crate::event::line::Event;
use crate::pass::chunk::EventRef;
use crate::span::group_key::GroupKey;
use crate::span::span_half::{ArgsPlace, Side, SpanHalf, join};
use crate::span::thread_scan::ThreadScan;
use crate::store::sorter::{Record, Sorted, Sorter, long_at, word_at};
use crate::summary::thread::RecordedThread;
use sa_format::Phase;
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// What an event of a thread is.
enum LanePart {
    Whole(LaneEvent),
    Half(SpanHalf),
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
        let Some(half) = SpanHalf::of(event, row, at, shift_ns) else {
            return LaneEvent::of(event, row, at, shift_ns).map(LanePart::Whole);
        };
        let source = scan.chunks[at.chunk as usize].source;
        let args = match half.side {
            Side::Begin => ArgsPlace::default(),
            Side::End => ArgsPlace::of(event, source, &scan.sources[source]),
        };
        Some(LanePart::Half(SpanHalf { args, ..half }))
    };
    scan.each(rows.keys().copied(), part, |part| match part {
        LanePart::Half(half) => halves.push(half),
        LanePart::Whole(event) => events.push(event),
    })?;
    join(&halves.finish()?, |begin, end| match begin.row {
        GroupKey::Thread(row) => events.push(LaneEvent::begun(row, begin, end)),
        GroupKey::Async(..) | GroupKey::Flow(..) => Ok(()),
    })?;
    events.finish()
}

/// Of what happens at one time, viewers take complete spans first, then the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LaneEventKind {
    /// `X`
    Complete,
    /// `B`
    Begin,
    /// A flow that ends at the next span.
    Next,
    /// An instant or a flow in a span.
    Point,
}

/// A place in the time of a thread. Its order is that of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaneEvent {
    /// Which of the threads.
    pub(crate) row: u32,
    pub(crate) start: i64,
    pub(crate) kind: LaneEventKind,
    /// Of complete spans that begin together the longest is the first.
    pub(crate) longest: i64,
    pub(crate) at: EventRef,
    /// The end of a span, [`UNFINISHED`] if it has none.
    pub(crate) end: i64,
    /// The event that ends a begun span, if there is one.
    pub(crate) end_at: Option<EventRef>,
    /// The place of the args of an end that is not written.
    pub(crate) end_args: ArgsPlace,
}

impl LaneEvent {
    /// What an event is on its lane, which is the `row`th; `None` if nothing happens there.
    fn of(event: &Event<'_>, row: u32, at: EventRef, shift_ns: i64) -> Option<LaneEvent> {
        let start = event.ts_ns + shift_ns;
        let (kind, end) = match event.phase {
            Phase::Complete => (LaneEventKind::Complete, start + event.dur_ns),
            Phase::FlowEnd if binds_to_next(event) => (LaneEventKind::Next, start),
            Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd => (LaneEventKind::Point, start),
            Phase::Instant | Phase::LegacyInstant if is_of_thread(event) => {
                (LaneEventKind::Point, start)
            }
            _ => return None,
        };
        let is_complete = kind == LaneEventKind::Complete;
        Some(LaneEvent {
            row,
            start,
            kind,
            longest: if is_complete { -event.dur_ns } else { 0 },
            at,
            end,
            end_at: None,
            end_args: ArgsPlace::default(),
        })
    }

    /// A begun span, and what ends it. A begin and an end at the same time become a complete span, because a viewer would process the end first.
    fn begun(row: u32, begin: &SpanHalf, end: Option<&SpanHalf>) -> LaneEvent {
        let end_now = end.filter(|end| end.start == begin.start);
        LaneEvent {
            row,
            start: begin.start,
            kind: end_now.map_or(LaneEventKind::Begin, |_| LaneEventKind::Complete),
            longest: 0,
            at: begin.at,
            end: end.map_or(UNFINISHED, |end| end.start),
            end_at: end.map(|end| end.at),
            end_args: end_now.map(|end| end.args).unwrap_or_default(),
        }
    }
}

/// Tells whether an instant is drawn on its thread's row.
fn is_of_thread(event: &Event<'_>) -> bool {
    #[derive(serde::Deserialize)]
    struct InstantScope<'a> {
        #[serde(borrow)]
        s: Option<std::borrow::Cow<'a, str>>,
    }
    let scope = serde_json::from_slice::<InstantScope<'_>>(event.line).ok();
    let scope = scope.and_then(|scoped| scoped.s);
    !matches!(scope.as_deref(), Some("p" | "g"))
}

impl Record for LaneEvent {
    const BYTES: usize = 46 + ArgsPlace::BYTES;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.row.to_le_bytes());
        for time in [self.start, self.longest, self.end] {
            out.extend_from_slice(&time.to_le_bytes());
        }
        self.at.store(out);
        self.end_at.unwrap_or(EventRef::NONE).store(out);
        out.extend_from_slice(&[self.kind as u8, u8::from(self.end_at.is_some())]);
        self.end_args.store(out);
    }

    fn load(bytes: &[u8]) -> Self {
        LaneEvent {
            row: word_at(bytes, 0),
            start: long_at(bytes, 4).cast_signed(),
            longest: long_at(bytes, 12).cast_signed(),
            end: long_at(bytes, 20).cast_signed(),
            at: EventRef::load(bytes, 28),
            end_at: (bytes[45] == 1).then(|| EventRef::load(bytes, 36)),
            kind: match bytes[44] {
                0 => LaneEventKind::Complete,
                1 => LaneEventKind::Begin,
                2 => LaneEventKind::Next,
                _ => LaneEventKind::Point,
            },
            end_args: ArgsPlace::load(&bytes[46..]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_comes_back_from_a_file_as_it_was() {
        let at = |chunk, nth| EventRef { chunk, nth };
        let kinds = [
            LaneEventKind::Complete,
            LaneEventKind::Begin,
            LaneEventKind::Next,
            LaneEventKind::Point,
        ];
        for kind in kinds {
            for end_at in [None, Some(at(0, 0)), Some(at(u32::MAX, 5))] {
                let mark = LaneEvent {
                    row: 7,
                    start: -3,
                    kind,
                    longest: i64::MIN,
                    at: at(1 << 20, 9),
                    end: i64::MAX,
                    end_at,
                    end_args: ArgsPlace::load(&[5; ArgsPlace::BYTES]),
                };
                let mut bytes = Vec::new();
                mark.store(&mut bytes);
                assert_eq!(
                    (bytes.len(), LaneEvent::load(&bytes)),
                    (LaneEvent::BYTES, mark)
                );
            }
        }
    }
}
