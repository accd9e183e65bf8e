//! The requests to link, as the second pass needs them.

use super::args::candidates::Hits;
use super::origin::LinkedSource;
use super::resolve::Resolved;
use super::table::{LinkTables, Lookup};
use super::times::Times;
use super::write::Linker;
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use serde::Serialize;

/// The requests that the merge has linked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkReport {
    /// Requests with a flow that the merge wrote: those with at least two events, of which no recorder wrote a flow.
    pub requests: u64,
    /// Flow events that it wrote.
    pub events: u64,
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
    tables: Option<LinkTables>,
    times: Times,
    pub(crate) report: LinkReport,
}

impl Links {
    pub(super) fn new(origins: Vec<(u64, u32)>, resolved: Resolved) -> std::io::Result<Links> {
        let tables = LinkTables::new(resolved.single, resolved.grouped)?;
        Ok(Links {
            origins,
            tables: Some(tables).filter(|tables| !tables.is_empty()),
            times: resolved.times,
            report: LinkReport {
                requests: resolved.requests,
                ..LinkReport::default()
            },
        })
    }

    /// Those of no request.
    pub(super) fn none(failed: &str) -> Links {
        Links {
            origins: Vec::new(),
            tables: None,
            times: Times::default(),
            report: LinkReport {
                failed: Some(failed.to_owned()),
                ..LinkReport::default()
            },
        }
    }

    /// A worker's view; `None` if there is nothing to link.
    pub(crate) fn lookup(&self) -> Option<Lookup<'_>> {
        self.tables.as_ref().map(Lookup::new)
    }

    /// Points a linker at one line of a source, whose times are moved by `shift_ns`; tells whether ids may stand in it.
    #[inline(always)]
    pub(crate) fn aim<'a>(
        &self,
        linker: &mut Linker<'a, '_>,
        number: usize,
        source: &Source<'a>,
        shift_ns: i64,
        line: &'a [u8],
    ) -> bool {
        let Some(hits) = Hits::of_line(source.bytes, line) else {
            return false;
        };
        let (scope, _) = self.origins[source.recording];
        let linked = LinkedSource {
            number,
            scope,
            shift_ns,
        };
        linker.aim(linked, source.bytes, hits);
        true
    }

    /// Begins to write the flows of a chunk of a source, whose times are moved by `shift_ns`; `None` if no request was served in its time.
    pub(crate) fn linker<'a, 'l>(
        &self,
        lookup: &'l mut Lookup<'a>,
        chunk: &'a Chunk,
        source: &Source<'a>,
        shift_ns: i64,
    ) -> Option<Linker<'a, 'l>> {
        let (first_ns, last_ns) = chunk.times_ns()?;
        let moved = [first_ns, last_ns].map(|ns| ns.saturating_add(shift_ns));
        if !self.times.meet(moved.into()) {
            return None;
        }
        let (scope, _) = self.origins[source.recording];
        let hits = Hits::new(source.bytes, &chunk.parts);
        let linked = LinkedSource {
            number: chunk.source,
            scope,
            shift_ns,
        };
        Some(Linker::new(lookup, linked, source.bytes, hits))
    }
}
