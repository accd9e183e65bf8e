//! What an engine or a worker did with a batch.

use super::args::count;
use crate::gather::request_moment::ids;
use crate::table::activity::Activity;
use std::cmp::Reverse;
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
}

impl BatchKind {
    fn of(name: &str) -> Option<BatchKind> {
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
    fn of(event: &PlacedEvent<'_>) -> BatchFacts {
        BatchFacts {
            request_ids: ids(event),
            prefill_requests: count(event, "prefill_requests").or_else(|| count(event, "prefill")),
            decode_requests: count(event, "decode_requests").or_else(|| count(event, "decode")),
            prefill_tokens: count(event, "prefill_tokens"),
            decode_tokens: count(event, "decode_tokens"),
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
    }

    /// How many requests it is of, if anything tells.
    pub(super) fn size(&self) -> Option<u64> {
        let listed = Some(self.request_ids.len() as u64).filter(|n| *n > 0);
        let counted = || Some(self.prefill_requests? + self.decode_requests?);
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
    /// That of an event, if it is one and has an end. A schedule that found nothing to do made no batch.
    pub(super) fn of(event: &PlacedEvent<'_>, name: &str, process: usize) -> Option<BatchSpan> {
        let kind = BatchKind::of(name)?;
        let end_ns = event.end_ns().filter(|_| !event.is_unfinished())?;
        let facts = BatchFacts::of(event);
        let is_empty = facts.size() == Some(0) || count(event, "tokens") == Some(0);
        if kind == BatchKind::Schedule && is_empty {
            return None;
        }
        Some(BatchSpan {
            process,
            kind,
            start_ns: event.ts_ns,
            end_ns: end_ns.max(event.ts_ns),
            facts,
        })
    }

    pub(super) fn dur_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// In the order of time, those that lie in no other one of their kind and process. Of those in it, and of the step around it, a span takes what it does not know.
    pub(super) fn outermost(mut spans: Vec<BatchSpan>) -> Vec<BatchSpan> {
        spans.sort_by_key(|span| (span.process, span.start_ns, Reverse(span.end_ns), span.kind));
        let mut kept: Vec<BatchSpan> = Vec::new();
        // The last one of each kind, by its number among them.
        let mut last: [Option<usize>; 3] = [None; 3];
        for mut span in spans {
            let around = |number: &usize| {
                let other: &BatchSpan = &kept[*number];
                other.process == span.process && span.end_ns <= other.end_ns
            };
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
        assert_eq!(
            (of(None, None), of(Some(0), Some(0))),
            ((None, None), (None, Some(0)))
        );
    }
}
