//! What exports take of the events beside what a report has: calls of agents, batches, and how full the caches were.

use super::batch_span::BatchSpan;
use super::cache_state::CacheState;
use super::call_span::CallSpan;
use super::span_end::{SpanEnd, SpanEnds, SpanKey};
use super::trace_clock::TraceClock;
use sa_format::Phase;
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

/// Those of a chunk. Spans whose ends are events of their own have a key.
#[derive(Default)]
struct Found {
    calls: Vec<(CallSpan, Option<SpanKey>)>,
    batches: Vec<(BatchSpan, Option<SpanKey>)>,
    caches: Vec<CacheState>,
    ends: SpanEnds,
}

impl Found {
    fn take(&mut self, event: &PlacedEvent<'_>, process: usize) {
        match event.phase {
            Phase::Complete | Phase::Begin | Phase::AsyncBegin => {
                let name = event.name();
                let call = CallSpan::of(event, &name);
                let batch = BatchSpan::of(event, &name, process);
                let key = || SpanKey::of(event, &name);
                self.calls.extend(call.map(|call| (call, key())));
                self.batches.extend(batch.map(|batch| (batch, key())));
            }
            Phase::End | Phase::AsyncEnd => self.ends.extend(SpanEnd::of(event)),
            Phase::Counter => self.caches.extend(CacheState::of(event, process)),
            _ => {}
        }
    }

    /// The calls, with what their ends say.
    fn calls(calls: Vec<(CallSpan, Option<SpanKey>)>, ends: &SpanEnds) -> Vec<CallSpan> {
        let whole = |(mut call, key): (CallSpan, Option<SpanKey>)| {
            if let Some(end) = key.and_then(|key| key.end(ends)) {
                call.tokens = end.tokens.or(call.tokens);
            }
            call
        };
        calls.into_iter().map(whole).collect()
    }

    /// The batches, too.
    fn batches(batches: Vec<(BatchSpan, Option<SpanKey>)>, ends: &SpanEnds) -> Vec<BatchSpan> {
        let whole = |(mut batch, key): (BatchSpan, Option<SpanKey>)| {
            if let Some(end) = key.and_then(|key| key.end(ends)) {
                batch.take_end(&end.facts);
            }
            batch
        };
        let batches = batches.into_iter().map(whole);
        batches.filter(BatchSpan::is_batch).collect()
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
                all.ends.extend(found.ends);
                Ok(())
            },
        )?;
        let mut calls = Found::calls(all.calls, &all.ends);
        calls.sort_by_key(|call| (call.start_ns, std::cmp::Reverse(call.end_ns)));
        all.caches.sort_by_key(|state| state.at_ns);
        Ok(ExportRecords {
            clock: TraceClock::of(events),
            calls,
            batches: BatchSpan::outermost(Found::batches(all.batches, &all.ends)),
            caches: all.caches,
        })
    }
}
