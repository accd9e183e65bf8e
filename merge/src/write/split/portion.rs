//! One part of a trace, and the events that it shows of a chunk.

use super::PartReport;
use super::bins::PartRange;
use super::crossing::Crossing;
use crate::event::edges::{Edges, Relation};
use crate::event::line::Event;
use crate::pass::chunk::Chunk;
use crate::write::sink::Length;
use serde_json::{Value, json};
use std::iter::Peekable;
use std::path::Path;
use std::vec::IntoIter;

/// One part of a trace.
pub(crate) struct Portion<'a> {
    /// Number of the part, counted from 0.
    pub(crate) number: usize,
    /// Number of parts.
    pub(crate) count: usize,
    /// Edges in ns from the trace's base, and amount of events, including events that cross the
    /// edges.
    pub(super) range: PartRange,
    /// Edges in each recording's own time.
    pub(super) recording_edges: Vec<Edges>,
    pub(super) crossing: &'a Crossing,
}

/// View of a part on a chunk.
pub(crate) struct PartView {
    /// Edges in the recording's own time.
    edges: Edges,
    /// Numbers of the events that are shown whatever their time, ascending: begins and ends of
    /// spans that extend into this part.
    extra: Peekable<IntoIter<u32>>,
}

impl PartView {
    /// Returns true if this part contains any event of the chunk.
    pub(crate) fn overlaps(&mut self, chunk: &Chunk) -> bool {
        chunk.overlaps(self.edges) || self.extra.peek().is_some()
    }

    /// Returns true if it shows all events that the trace shows of the chunk, without additional
    /// marks.
    pub(crate) fn shows_all(&mut self, chunk: &Chunk) -> bool {
        chunk.is_within(self.edges) && self.extra.peek().is_none()
    }

    /// Returns true if the begin of an event is in this part.
    #[inline]
    pub(crate) fn has_begin(&self, event: &Event<'_>) -> bool {
        (self.edges.from_ns..=self.edges.to_ns).contains(&event.ts_ns)
    }

    /// Returns the position of the `nth` event relative to this part, given its position relative
    /// to the window.
    #[inline]
    pub(crate) fn relation(&mut self, nth: u32, relation: Relation, event: &Event<'_>) -> Relation {
        if relation == Relation::Outside {
            return relation;
        }
        if self.extra.next_if_eq(&nth).is_some() {
            return Relation::Across;
        }
        match self.edges.relation(event) {
            Relation::Inside => relation,
            other => other,
        }
    }
}

impl Portion<'_> {
    /// Returns the view on a chunk.
    pub(crate) fn view(&self, recording: usize, chunk: usize) -> PartView {
        let extra = self.crossing.extra_events(chunk, self.number);
        PartView {
            edges: self.recording_edges[recording],
            extra: extra.into_iter().peekable(),
        }
    }

    /// Returns the description of the part in `otherData`.
    pub(crate) fn other_data(&self) -> Value {
        json!({
            "number": self.number + 1,
            "of": self.count,
            "from_ns": self.begin_ns(),
            "to_ns": self.end_ns(),
            "events": self.range.events,
        })
    }

    pub(super) fn report(&self, path: &Path, length: &Length) -> PartReport {
        PartReport {
            path: path.to_owned(),
            bytes: length.bytes,
            text_bytes: length.text_bytes,
            events: self.range.events,
            from_ns: self.begin_ns(),
            to_ns: self.end_ns(),
        }
    }

    fn begin_ns(&self) -> i64 {
        self.range.edges.from_ns.max(0)
    }

    fn end_ns(&self) -> Option<i64> {
        let to_ns = self.range.edges.to_ns;
        (to_ns != i64::MAX).then_some(to_ns)
    }
}
