//! What an engine or a worker did with a batch.

use super::count;
use crate::gather::request_moment::ids;
use crate::table::activity::Activity;
use std::cmp::Reverse;
use std::collections::HashMap;
use trace_merge::events::PlacedEvent;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BatchKind {
    /// An engine put it together.
    Schedule,
    /// A worker ran a step with it.
    Step,
    /// A worker's model ran on it, within a step.
    Forward,
}

/// One span of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BatchSpan {
    pub(super) process: usize,
    /// Its thread, and which of the rows of that.
    pub(super) row: (usize, usize),
    pub(super) kind: BatchKind,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) facts: BatchFacts,
}

/// What its args say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BatchFacts {
    pub(super) request_ids: Vec<String>,
    pub(super) prefill_requests: Option<u64>,
    pub(super) decode_requests: Option<u64>,
    pub(super) prefill_tokens: Option<u64>,
    pub(super) decode_tokens: Option<u64>,
    /// Of both, where nothing tells them apart.
    pub(super) tokens: Option<u64>,
}

impl BatchKind {
    pub(super) fn of(name: &str) -> Option<BatchKind> {
        match Activity::of(name) {
            Some(Activity::Schedule) => Some(BatchKind::Schedule),
            Some(Activity::Step) => Some(BatchKind::Step),
            _ => name
                .ends_with("model_runner: forward")
                .then_some(BatchKind::Forward),
        }
    }
}

impl BatchFacts {
    pub(super) fn of(event: &PlacedEvent<'_>) -> BatchFacts {
        BatchFacts {
            request_ids: ids(event),
            prefill_requests: count(event, "prefill_requests").or_else(|| count(event, "prefill")),
            decode_requests: count(event, "decode_requests").or_else(|| count(event, "decode")),
            prefill_tokens: count(event, "prefill_tokens"),
            decode_tokens: count(event, "decode_tokens"),
            tokens: count(event, "tokens"),
        }
    }

    /// Takes what it does not know itself.
    fn add(&mut self, other: &BatchFacts) {
        if self.request_ids.is_empty() {
            self.request_ids.clone_from(&other.request_ids);
        }
        self.prefill_requests = self.prefill_requests.or(other.prefill_requests);
        self.decode_requests = self.decode_requests.or(other.decode_requests);
        self.prefill_tokens = self.prefill_tokens.or(other.prefill_tokens);
        self.decode_tokens = self.decode_tokens.or(other.decode_tokens);
        self.tokens = self.tokens.or(other.tokens);
    }

    /// How many requests it is of, if anything tells.
    pub(super) fn size(&self) -> Option<u64> {
        let listed = Some(self.request_ids.len() as u64).filter(|n| *n > 0);
        let counted = || Some(self.prefill_requests?.saturating_add(self.decode_requests?));
        listed.or_else(counted)
    }

    /// `Prefill`, `Decode` or both, in the words of msServiceProfiler.
    pub(super) fn batch_type(&self) -> Option<&'static str> {
        match (self.prefill_requests?, self.decode_requests?) {
            (0, 0) => None,
            (_, 0) => Some("Prefill"),
            (0, _) => Some("Decode"),
            _ => Some("Prefill,Decode"),
        }
    }
}

impl BatchSpan {
    /// That of an event, if it is one and has an end.
    pub(super) fn of(event: &PlacedEvent<'_>, name: &str, process: usize) -> Option<BatchSpan> {
        let kind = BatchKind::of(name)?;
        let end_ns = event.end_ns().filter(|_| !event.is_unfinished())?;
        Some(BatchSpan {
            process,
            row: (event.thread, event.row),
            kind,
            start_ns: event.ts_ns,
            end_ns: end_ns.max(event.ts_ns),
            facts: BatchFacts::of(event),
        })
    }

    /// Takes what its end says, which knows more.
    pub(super) fn take_end(&mut self, end: &BatchFacts) {
        let begin = std::mem::replace(&mut self.facts, end.clone());
        self.facts.add(&begin);
    }

    /// A schedule that found nothing to do made no batch.
    pub(super) fn is_batch(&self) -> bool {
        let is_empty = self.facts.size() == Some(0) || self.facts.tokens == Some(0);
        self.kind != BatchKind::Schedule || !is_empty
    }

    pub(super) fn dur_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// In the order of time, those that lie in no other one of their kind and row. Of those in it, and of the step around it, a span takes what it does not know.
    pub(super) fn outermost(mut spans: Vec<BatchSpan>) -> Vec<BatchSpan> {
        spans.sort_by_key(|span| (span.row, span.start_ns, Reverse(span.end_ns), span.kind));
        let mut kept: Vec<BatchSpan> = Vec::new();
        // The last one of each kind in each row, by its number among them.
        let mut last_of: HashMap<(usize, usize), [Option<usize>; 3]> = HashMap::new();
        for mut span in spans {
            let last = last_of.entry(span.row).or_default();
            let around = |number: &usize| span.end_ns <= kept[*number].end_ns;
            if let Some(other) = last[span.kind as usize].filter(around) {
                kept[other].facts.add(&span.facts);
                continue;
            }
            let step = last[BatchKind::Step as usize].filter(around);
            if let Some(step) = step.filter(|_| span.kind == BatchKind::Forward) {
                span.facts.add(&kept[step].facts);
            }
            last[span.kind as usize] = Some(kept.len());
            kept.push(span);
        }
        kept.sort_by_key(|span| (span.start_ns, span.process, span.kind));
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(
        process: usize,
        kind: BatchKind,
        start_ns: i64,
        end_ns: i64,
        ids: &[&str],
    ) -> BatchSpan {
        BatchSpan {
            process,
            row: (process, 0),
            kind,
            start_ns,
            end_ns,
            facts: BatchFacts {
                request_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
                ..BatchFacts::default()
            },
        }
    }

    #[test]
    fn a_call_in_a_step_is_the_same_step() {
        let found = BatchSpan::outermost(vec![
            span(1, BatchKind::Step, 2, 90, &[]),
            span(1, BatchKind::Forward, 10, 50, &[]),
            span(1, BatchKind::Step, 0, 100, &["a", "b"]),
            span(2, BatchKind::Step, 50, 60, &["c"]),
            span(1, BatchKind::Step, 100, 200, &["d"]),
        ]);
        let of = |span: &BatchSpan| (span.process, span.start_ns, span.facts.size());
        let found: Vec<_> = found.iter().map(of).collect();
        let expected = [
            (1, 0, Some(2)),
            (1, 10, Some(2)),
            (2, 50, Some(1)),
            (1, 100, Some(1)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_step_within_that_of_another_thread_is_its_own() {
        let mut other = span(1, BatchKind::Step, 10, 20, &["b"]);
        other.row = (2, 0);
        let found = BatchSpan::outermost(vec![span(1, BatchKind::Step, 0, 100, &["a"]), other]);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn what_is_in_a_batch_has_a_name() {
        let of = |prefill, decode| {
            let facts = BatchFacts {
                prefill_requests: prefill,
                decode_requests: decode,
                ..BatchFacts::default()
            };
            (facts.batch_type(), facts.size())
        };
        assert_eq!(of(Some(2), Some(0)), (Some("Prefill"), Some(2)));
        assert_eq!(of(Some(0), Some(3)), (Some("Decode"), Some(3)));
        assert_eq!(of(Some(1), Some(3)), (Some("Prefill,Decode"), Some(4)));
        let most = of(Some(u64::MAX), Some(1));
        assert_eq!(most, (Some("Prefill,Decode"), Some(u64::MAX)));
        assert_eq!(
            (of(None, None), of(Some(0), Some(0))),
            ((None, None), (None, Some(0)))
        );
    }
}
