//! The requests to link, in the form that the second pass needs.

use super::args::candidates::{Hits, offset};
use super::collector::Origin;
use super::program::first_spans::{FirstSpan, FirstSpanLinks, spans_at};
use super::program::styles::LooseFlows;
use super::table::{LinkTable, LinkedEvents, Lookup};
use super::write::{Linker, LinkerInput};
use crate::base::number::is_zero;
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use crate::store::sorter::Sorted;
use serde::Serialize;

/// Report on the requests that the merge has linked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkReport {
    /// Number of requests that only have a flow of the merge: they have at least two events, and no
    /// program starts a flow for them.
    pub requests: u64,
    /// Number of events in the merge's flows.
    pub events: u64,
    /// Number of events that were added to flows of the program, on threads where the program does
    /// not draw them.
    #[serde(skip_serializing_if = "is_zero")]
    pub events_joined: u64,
    /// Flows of the program that lead nowhere. Empty if only a part of the run is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loose_flows: Vec<LooseFlows>,
    /// Number of requests that are not linked although they have at least two events, because there
    /// is no memory for more links ([`Options::memory`](crate::Options::memory)).
    #[serde(skip_serializing_if = "is_zero")]
    pub requests_dropped: u64,
    /// Number of events with more ids than are read.
    #[serde(skip_serializing_if = "is_zero")]
    pub events_cut: u64,
    /// Error of a temporary file that prevented all links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// Links and data for the second pass.
#[derive(Default)]
pub(crate) struct Links {
    pub(super) origins: Vec<Origin>,
    pub(super) table: LinkTable,
    pub(super) first_spans: Sorted<FirstSpan>,
    pub(crate) report: LinkReport,
}

impl Links {
    /// Returns a worker's view of the links, or `None` if there is nothing to link.
    pub(crate) fn lookup(&self) -> Option<Lookup<'_>> {
        (!self.table.links.is_empty()).then(|| Lookup {
            table: &self.table,
            written: LinkedEvents::default(),
        })
    }

    /// Prepares a linker for one line of a chunk, whose times are moved by `shift_ns`. Returns true
    /// if the line may get flow events.
    #[inline(always)]
    pub(crate) fn prepare<'a>(
        &'a self,
        linker: &mut Linker<'a, '_>,
        chunk: &'a Chunk,
        source: &Source<'a>,
        shift_ns: i64,
        line: &'a [u8],
    ) -> bool {
        let table = &self.table;
        if table.links.is_empty() {
            return false;
        }
        let hits = Hits::in_line(source.bytes, line);
        if hits.is_none() && !table.has_prior_links {
            return false;
        }
        let mut input = self.source_input(chunk, source, shift_ns);
        input.reads_ids = hits.is_some() && !table.times.is_empty();
        input.hits = hits.unwrap_or_else(|| Hits::new(source.bytes, &[]));
        let start = offset(source.bytes, line);
        let first_spans = spans_at(&self.first_spans, chunk.source, start..start + 1);
        input.first_spans = FirstSpanLinks::find(first_spans, table);
        let has_any = input.reads_ids || table.has_prior_links || !input.first_spans.is_empty();
        linker.set_input(input);
        has_any
    }

    /// Creates the linker for a chunk of a source, whose times are moved by `shift_ns`. Returns
    /// `None` if the chunk gets no flow events.
    pub(crate) fn linker<'a, 'l>(
        &'a self,
        lookup: &'l mut Lookup<'a>,
        chunk: &'a Chunk,
        source: &Source<'a>,
        shift_ns: i64,
    ) -> Option<Linker<'a, 'l>> {
        let (first_ns, last_ns) = chunk.recorded_range_ns()?;
        // A begin may be shown 1 ns before the window.
        let shown = [first_ns, last_ns].map(|ns| chunk.shown_start_ns(ns));
        let moved = [shown[0].saturating_sub(1), shown[1]].map(|ns| ns.saturating_add(shift_ns));
        let mut input = self.source_input(chunk, source, shift_ns);
        input.reads_ids = self.table.times.overlap(moved.into());
        let end = chunk.parts.last().map_or(0, |part| part.end);
        let offsets = chunk.parts.first().map_or(end, |part| part.start)..end;
        let first_spans = spans_at(&self.first_spans, chunk.source, offsets);
        input.first_spans = FirstSpanLinks::find(first_spans, &self.table);
        let has_any = input.reads_ids || !input.first_spans.is_empty();
        has_any.then(|| Linker::new(lookup, input))
    }

    fn source_input<'a>(
        &'a self,
        chunk: &'a Chunk,
        source: &Source<'a>,
        shift_ns: i64,
    ) -> LinkerInput<'a> {
        LinkerInput {
            source: chunk.source,
            origin: self.origins[source.recording],
            shift_ns,
            bytes: source.bytes,
            hits: Hits::new(source.bytes, &chunk.parts),
            reads_ids: true,
            first_spans: FirstSpanLinks::default(),
        }
    }
}
