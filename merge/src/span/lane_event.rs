//! What happens on a thread at a time: a span, the begin or the end of one, or what lies in one.

use crate::base::span_stack::UNFINISHED;
use crate::event::flow::binds_to_next;
use crate::event::line::Event;
use crate::pass::chunk::EventRef;
use crate::span::span_half::SpanHalf;
use crate::store::sorter::{Record, long_at, word_at};
use sa_format::Phase;

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
}

impl LaneEvent {
    /// What an event is on its lane, which is the `row`th; `None` if nothing happens there.
    pub(super) fn of(
        event: &Event<'_>,
        row: u32,
        at: EventRef,
        shift_ns: i64,
    ) -> Option<LaneEvent> {
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
        })
    }

    /// A begun span, and the time and the event that end it, if it has an end. With `is_complete` it counts as a complete span.
    pub(super) fn begun(
        row: u32,
        begin: &SpanHalf,
        end: Option<(i64, EventRef)>,
        is_complete: bool,
    ) -> LaneEvent {
        LaneEvent {
            row,
            start: begin.start,
            kind: match is_complete {
                true => LaneEventKind::Complete,
                false => LaneEventKind::Begin,
            },
            longest: 0,
            at: begin.at,
            end: end.map_or(UNFINISHED, |(end, _)| end),
            end_at: end.map(|(_, at)| at),
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
    const BYTES: usize = 46;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.row.to_le_bytes());
        for time in [self.start, self.longest, self.end] {
            out.extend_from_slice(&time.to_le_bytes());
        }
        let end_at = self.end_at.unwrap_or(EventRef::NONE);
        for at in [self.at, end_at] {
            out.extend_from_slice(&at.chunk.to_le_bytes());
            out.extend_from_slice(&at.nth.to_le_bytes());
        }
        out.extend_from_slice(&[self.kind as u8, u8::from(self.end_at.is_some())]);
    }

    fn load(bytes: &[u8]) -> Self {
        let (words, tail) = bytes.split_at(44);
        let at = |at: usize| EventRef {
            chunk: word_at(words, at),
            nth: word_at(words, at + 4),
        };
        let kinds = [
            LaneEventKind::Complete,
            LaneEventKind::Begin,
            LaneEventKind::Next,
        ];
        LaneEvent {
            row: word_at(words, 0),
            start: long_at(words, 4).cast_signed(),
            longest: long_at(words, 12).cast_signed(),
            end: long_at(words, 20).cast_signed(),
            at: at(28),
            end_at: (tail[1] == 1).then(|| at(36)),
            kind: kinds
                .get(usize::from(tail[0]))
                .copied()
                .unwrap_or(LaneEventKind::Point),
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
