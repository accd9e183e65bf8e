//! What exports take of the events beside what a report has: calls of agents, batches, and how full the caches were.

use super::batch_span::{BatchKind, BatchSpan};
use super::cache_state::CacheState;
use super::call_span::CallSpan;
use super::trace_clock::TraceClock;
use trace_merge::Error;
use trace_merge::events::{PlacedEvent, TraceEvents};

/// All of them, each in the order of time.
#[derive(Debug)]
pub(crate) struct ExportRecords {
    pub(super) clock: TraceClock,
    /// Spans of agents: their functions, their calls of a language model and of tools.
    pub(super) calls: Vec<CallSpan>,
    /// What engines and workers did with batches.
    pub(super) batches: Vec<BatchSpan>,
    /// What engines said of the blocks of their caches.
    pub(super) caches: Vec<CacheState>,
}

/// Those of a chunk.
#[derive(Default)]
struct Found {
    calls: Vec<CallSpan>,
    batches: Vec<BatchSpan>,
    caches: Vec<CacheState>,
}

impl Found {
    fn take(&mut self, event: &PlacedEvent<'_>, process: usize) {
        match event.phase {
            b'X' | b'B' | b'b' => {
                let name = event.name();
                self.calls.extend(CallSpan::of(event, &name));
                self.batches.extend(BatchSpan::of(event, &name, process));
            }
            b'C' => self.caches.extend(CacheState::of(event, process)),
            _ => {}
        }
    }
}

impl ExportRecords {
    /// Reads them, in a pass of its own over the events.
    pub(crate) fn read(events: &TraceEvents<'_>) -> Result<ExportRecords, Error> {
        let mut all = Found::default();
        events.fold(
            Found::default,
            |found, event| found.take(event, events.threads()[event.thread].process),
            |found| {
                all.calls.extend(found.calls);
                all.batches.extend(found.batches);
                all.caches.extend(found.caches);
                Ok(())
            },
        )?;
        all.calls
            .sort_by_key(|call| (call.start_ns, std::cmp::Reverse(call.end_ns)));
        all.caches.sort_by_key(|state| state.at_ns);
        Ok(ExportRecords {
            clock: TraceClock::of(events),
            calls: all.calls,
            batches: BatchSpan::outermost(all.batches),
            caches: all.caches,
        })
    }

    /// Those of one kind.
    pub(super) fn batches_of(&self, kind: BatchKind) -> impl Iterator<Item = &BatchSpan> {
        self.batches.iter().filter(move |batch| batch.kind == kind)
    }
}
