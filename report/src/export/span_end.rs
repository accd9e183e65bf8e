//! The end of a span that is an event of its own: it may have args that the begin could not have.

use super::batch_span::{BatchFacts, BatchKind};
use super::call_span::{CallKind, CallTokens};
use sa_format::Phase;
use std::collections::HashMap;
use trace_merge::events::PlacedEvent;

/// Where a span of two events lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SpanKey {
    /// The id of an async span, else the thread.
    place: Result<u64, usize>,
    start_ns: i64,
    end_ns: i64,
    name: String,
}

/// What the end says.
#[derive(Debug, Default)]
pub(super) struct SpanEnd {
    pub(super) tokens: CallTokens,
    pub(super) facts: BatchFacts,
}

/// What ends say, by their spans.
pub(super) type SpanEnds = HashMap<SpanKey, SpanEnd>;

impl SpanKey {
    /// That of a begin or an end whose other half is known.
    pub(super) fn of(event: &PlacedEvent<'_>, name: &str) -> Option<SpanKey> {
        let other_ns = event.other_ns?;
        let (start_ns, end_ns) = match event.phase {
            Phase::Begin | Phase::AsyncBegin => (event.ts_ns, other_ns),
            Phase::End | Phase::AsyncEnd => (other_ns, event.ts_ns),
            _ => return None,
        };
        let is_async = matches!(event.phase, Phase::AsyncBegin | Phase::AsyncEnd);
        Some(SpanKey {
            place: event.id().filter(|_| is_async).ok_or(event.thread),
            start_ns,
            end_ns,
            name: name.to_owned(),
        })
    }

    /// What its end says. An end may have no name.
    pub(super) fn end<'a>(&self, ends: &'a SpanEnds) -> Option<&'a SpanEnd> {
        let unnamed = || SpanKey {
            name: String::new(),
            ..self.clone()
        };
        ends.get(self).or_else(|| ends.get(&unnamed()))
    }
}

impl SpanEnd {
    /// That of an end, if it says anything of a call or a batch.
    pub(super) fn of(event: &PlacedEvent<'_>) -> Option<(SpanKey, SpanEnd)> {
        if event.args().is_empty() {
            return None;
        }
        let name = event.name();
        let is_asked = BatchKind::of(&name).is_some() || CallKind::of(&event.category()).is_some();
        if !is_asked && !name.is_empty() {
            return None;
        }
        let (tokens, facts) = (CallTokens::of(event), BatchFacts::of(event));
        let is_nothing = tokens == CallTokens::default() && facts == BatchFacts::default();
        let key = SpanKey::of(event, &name).filter(|_| !is_nothing)?;
        Some((key, SpanEnd { tokens, facts }))
    }
}
