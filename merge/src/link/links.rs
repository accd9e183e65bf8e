//! The requests to link, as the second pass needs them.

use super::args::candidates::Hits;
use super::program::first_spans::FirstSpans;
use super::program::loose_flows::LooseFlows;
use super::resolve::Resolved;
use super::table::{LinkTable, Lookup, ProgramFlows};
use super::times::Times;
use super::write::{Aim, LinkedSource, Linker};
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use serde::Serialize;

/// The requests that the merge has linked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkReport {
    /// Requests with a flow of the merge alone: they have at least two events, and no program starts a flow for them.
    pub requests: u64,
    /// Events of the merge's flows.
    pub events: u64,
    /// Events that it added to flows of the program, on the threads on which the program does not draw them.
    #[serde(skip_serializing_if = "is_zero")]
    pub events_joined: u64,
    /// Flows of the program that lead nowhere. Absent if only a part of the run is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loose_flows: Vec<LooseFlows>,
    /// Requests that are not linked, although they have at least two events, because there is no memory for more links
    /// ([`Options::memory`](crate::Options::memory)).
    #[serde(skip_serializing_if = "is_zero")]
    pub requests_dropped: u64,
    /// Events that carry more ids than count.
    #[serde(skip_serializing_if = "is_zero")]
    pub events_cut: u64,
    /// Why no request is linked, where a temporary file could not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What the second pass needs to know.
pub(crate) struct Links {
    origins: Vec<(u64, u32)>,
    tables: Option<(LinkTable, ProgramFlows)>,
    first_spans: Option<FirstSpans>,
    times: Times,
    pub(crate) report: LinkReport,
}

impl Links {
    pub(super) fn new(
        origins: Vec<(u64, u32)>,
        resolved: Resolved,
        first_spans: Option<FirstSpans>,
        styles: Vec<Vec<u8>>,
    ) -> Links {
        let report = LinkReport {
            requests: resolved.requests,
            requests_dropped: resolved.dropped,
            loose_flows: resolved.loose.report(&styles),
            ..LinkReport::default()
        };
        let flows = ProgramFlows {
            threads: resolved.threads,
            styles,
            has_leads: resolved.leads > 0,
        };
        let links = resolved.links;
        Links {
            origins,
            tables: (!links.is_empty()).then_some((links, flows)),
            first_spans,
            times: resolved.times,
            report,
        }
    }

    /// Returns the links of no request.
    pub(super) fn none(failed: &str) -> Links {
        Links {
            origins: Vec::new(),
            tables: None,
            first_spans: None,
            times: Times::default(),
            report: LinkReport {
                failed: Some(failed.to_owned()),
                ..LinkReport::default()
            },
        }
    }

    /// Returns a worker's view, or `None` if there is nothing to link.
    pub(crate) fn lookup(&self) -> Option<Lookup<'_>> {
        let (links, flows) = self.tables.as_ref()?;
        Some(Lookup::new(links, flows))
    }

    /// Points a linker at one line of a chunk, whose times are moved by `shift_ns`. Returns true if the line may get flow events.
    #[inline(always)]
    pub(crate) fn aim<'a>(
        &'a self,
        linker: &mut Linker<'a, '_>,
        chunk: &'a Chunk,
        source: &Source<'a>,
        shift_ns: i64,
        line: &'a [u8],
    ) -> bool {
        let Some((_, flows)) = &self.tables else {
            return false;
        };
        let hits = Hits::of_line(source.bytes, line);
        if hits.is_none() && !flows.has_leads {
            return false;
        }
        let mut aim = self.of_source(chunk, source, shift_ns);
        aim.reads_ids = hits.is_some() && !self.times.is_empty();
        aim.hits = hits.unwrap_or_else(|| Hits::new(source.bytes, &[]));
        let has_any = aim.reads_ids || flows.has_leads || !aim.first_spans.is_empty();
        linker.aim(aim);
        has_any
    }

    /// Begins to write the flows of a chunk of a source, whose times are moved by `shift_ns`; `None` if it gets no flow events.
    pub(crate) fn linker<'a, 'l>(
        &'a self,
        lookup: &'l mut Lookup<'a>,
        chunk: &'a Chunk,
        source: &Source<'a>,
        shift_ns: i64,
    ) -> Option<Linker<'a, 'l>> {
        let (first_ns, last_ns) = chunk.times_ns()?;
        // A begin may be shown 1 ns before the window.
        let shown = [first_ns, last_ns].map(|ns| chunk.shown_start_ns(ns));
        let moved = [shown[0].saturating_sub(1), shown[1]].map(|ns| ns.saturating_add(shift_ns));
        let mut aim = self.of_source(chunk, source, shift_ns);
        aim.reads_ids = self.times.meet(moved.into());
        let has_any = aim.reads_ids || !aim.first_spans.is_empty();
        has_any.then(|| Linker::new(lookup, aim))
    }

    fn of_source<'a>(&'a self, chunk: &'a Chunk, source: &Source<'a>, shift_ns: i64) -> Aim<'a> {
        let (scope, _) = self.origins[source.recording];
        let first_spans = self.first_spans.as_ref();
        Aim {
            source: LinkedSource {
                number: chunk.source,
                recording: source.recording,
                scope,
                shift_ns,
            },
            bytes: source.bytes,
            hits: Hits::new(source.bytes, &chunk.parts),
            reads_ids: true,
            first_spans: first_spans.map_or_else(Default::default, |all| all.of_chunk(chunk)),
        }
    }
}
