//! Collects events in a second pass, for a report on one request, step or moment.

use super::chunk_records::{ChunkContext, ChunkRecords};
use super::edge::{Edge, number};
use super::name_keys::{NameKeys, names_requests};
use super::request_moment::{arg, ids, is_token};
use super::request_output::{Pauses, RequestOutput, outputs};
use super::slice_record::{OpenSpan, SliceRecord, track_id};
use super::step_record::{StepRecord, StepTokens, step_number};
use crate::table::{Activity, BatchOfStep, SeriesKind};
use sa_format::Phase;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use trace_merge::events::{EventUse, PlacedEvent};
use trace_store::sorter::Record;

/// Name of the flow from the engine's call of a step to the workers.
const STEP_FLOW: &str = "batch";

/// A range of times. Both ends are included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeRange {
    pub(crate) from_ns: i64,
    pub(crate) to_ns: i64,
}

impl TimeRange {
    /// Returns true if a time in ns is in this range, including both of its ends.
    fn contains(&self, ns: i64) -> bool {
        (self.from_ns..=self.to_ns).contains(&ns)
    }

    /// Returns true if the span of an event overlaps this range. A span without an end overlaps everything after its
    /// start.
    fn overlaps(&self, event: &PlacedEvent<'_>) -> bool {
        let end_ns = span_end(event).unwrap_or(i64::MAX).max(event.ts_ns);
        event.ts_ns <= self.to_ns && self.from_ns <= end_ns
    }
}

/// Returns the end of an event's span in ns, or `None` if the event has no span or the span has no end.
fn span_end(event: &PlacedEvent<'_>) -> Option<i64> {
    event.end_ns().filter(|_| !event.is_unfinished())
}

/// Returns true if an event is a whole span or the start of one.
fn is_span(event: &PlacedEvent<'_>) -> bool {
    matches!(
        event.phase,
        Phase::Complete | Phase::Begin | Phase::AsyncBegin
    )
}

/// Returns the number of requests in a step that prefill, if an event has it.
fn prefill_requests(event: &PlacedEvent<'_>) -> Option<u64> {
    arg(event, "prefill_requests").or_else(|| arg(event, "prefill"))
}

/// Last values of the engines' counters before some time.
#[derive(Debug, Default)]
pub(crate) struct Levels(pub(crate) BTreeMap<(SeriesKind, usize), Edge>);

impl Levels {
    /// Stores the latest value of each engine counter that occurs in `edges`. Changes that set no counter are ignored.
    fn update(&mut self, edges: Vec<Edge>) {
        for edge in edges {
            if let Some(kind) = edge.kind.level() {
                let last = self.0.entry((kind, edge.process as usize)).or_insert(edge);
                if last.ns <= edge.ns {
                    *last = edge;
                }
            }
        }
    }
}

/// The request that a pass collects events for.
pub(crate) struct RequestPass<'a> {
    pub(crate) context: ChunkContext<'a>,
    pub(crate) id: &'a str,
    /// Time from the request's arrival to its end.
    pub(crate) time: TimeRange,
}

/// A step of a worker during a request, or a batch in such a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestStep {
    pub(crate) process: usize,
    pub(crate) start_ns: i64,
    /// End of the step, or `i64::MAX` if it has none.
    pub(crate) end_ns: Reverse<i64>,
    pub(crate) number: Option<u64>,
    /// True if the step names the request.
    pub(crate) names_request: bool,
    /// True if the step's args say that it prefills nothing.
    pub(crate) only_decodes: bool,
}

/// Events of one request.
#[derive(Default)]
pub(crate) struct RequestEvents {
    counters: ChunkRecords,
    /// Counter values at the request's arrival.
    pub(crate) levels: Levels,
    pub(crate) steps: Vec<RequestStep>,
    /// Process and time of each token.
    pub(crate) tokens: Vec<(usize, i64)>,
    /// Process of the frontend, and its number for the request.
    pub(crate) number: Option<(usize, u64)>,
}

impl RequestEvents {
    /// Adds an event if it is relevant to the request of the pass: one of its tokens, a step during it, its span with
    /// the frontend's number, or a counter value from before its arrival.
    pub(crate) fn add(&mut self, pass: &RequestPass<'_>, event: &PlacedEvent<'_>) {
        if event.phase == Phase::Counter {
            if event.ts_ns <= pass.time.from_ns {
                self.counters.add_event(&pass.context, event);
            }
            return;
        }
        let process = pass.context.threads[event.thread].process;
        let names_request = || ids(event).iter().any(|id| id == pass.id);
        let name = event.name();
        if is_token(&name, event.phase) {
            if pass.time.contains(event.ts_ns) && names_request() {
                self.tokens.push((process, event.ts_ns));
            }
        } else if is_span(event) && pass.time.overlaps(event) {
            let is_step =
                names_requests(&name) && Activity::from_name(&name) != Some(Activity::Schedule);
            if is_step {
                self.steps.push(RequestStep {
                    process,
                    start_ns: event.ts_ns,
                    end_ns: Reverse(span_end(event).unwrap_or(i64::MAX)),
                    number: step_number(event),
                    names_request: names_request(),
                    only_decodes: prefill_requests(event) == Some(0),
                });
            } else if name == "request" && names_request() {
                let number = arg(event, "number").map(|number| (process, number));
                self.number = self.number.or(number);
            }
        }
    }

    /// Adds what the next chunk contains about the request.
    pub(crate) fn merge(&mut self, next: RequestEvents) {
        self.levels.update(next.counters.edges);
        self.steps.extend(next.steps);
        self.tokens.extend(next.tokens);
        self.number = self.number.or(next.number);
    }
}

/// Outputs of one request, as a frontend listed them.
#[derive(Default)]
pub(crate) struct OutputsOfRequest {
    pub(crate) outputs: Vec<RequestOutput>,
    pub(crate) pauses: Pauses,
}

impl OutputsOfRequest {
    /// Adds the outputs of one request that a frontend's span lists, and the pause before the span, if any. `key` is
    /// the sort key of that request's outputs.
    pub(crate) fn add(&mut self, context: &ChunkContext<'_>, key: u64, event: &PlacedEvent<'_>) {
        if is_span(event) {
            let process = number(context.threads[event.thread].process);
            let listed = outputs(event, &event.name(), process, &mut self.pauses);
            self.outputs
                .extend(listed.into_iter().filter(|output| output.key == key));
        }
    }

    /// Adds the outputs of the next chunk.
    pub(crate) fn merge(&mut self, next: OutputsOfRequest) {
        self.outputs.extend(next.outputs);
        self.pauses.merge(next.pauses);
    }
}

/// A host span with the number of its step. Sorted, the spans of a step are adjacent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NumberedSpan {
    /// Identifies the engine that counts the steps.
    pub(crate) engine: u32,
    pub(crate) number: u64,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: Reverse<i64>,
    pub(crate) process: u32,
    pub(crate) track: u64,
    pub(crate) is_open: bool,
}

impl Record for NumberedSpan {}

impl NumberedSpan {
    /// Returns the numbered span of an event, or `None` if it is not one. `engines` lists the engine of each process,
    /// and `last_ns` returns the time of a process's last event.
    pub(crate) fn from_event(
        event: &PlacedEvent<'_>,
        context: &ChunkContext<'_>,
        engines: &[u32],
        last_ns: impl Fn(usize) -> Option<i64>,
    ) -> Option<NumberedSpan> {
        let number = is_span(event).then(|| step_number(event)).flatten()?;
        let process = context.threads[event.thread].process;
        let event_use = context.devices.event_use(event, process, &event.category());
        let end_ns = span_end(event);
        let close_ns = end_ns.or_else(|| last_ns(process)).unwrap_or(event.ts_ns);
        (event_use == EventUse::Host).then(|| NumberedSpan {
            engine: engines[process],
            number,
            start_ns: event.ts_ns,
            end_ns: Reverse(close_ns.max(event.ts_ns)),
            process: super::edge::number(process),
            track: track_id(event, process),
            is_open: end_ns.is_none(),
        })
    }
}

/// The step that a pass collects events for.
pub(crate) struct StepPass<'a> {
    pub(crate) context: ChunkContext<'a>,
    pub(crate) step: u64,
    /// Engine of each process, and engine of the step.
    pub(crate) engines: &'a [u32],
    pub(crate) engine: u32,
    pub(crate) time: TimeRange,
}

/// An event of a flow from the engine's call of a step to the workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepFlow {
    pub(crate) id: u64,
    pub(crate) process: usize,
    pub(crate) ts_ns: i64,
    pub(crate) is_start: bool,
}

/// Events of one step.
#[derive(Default)]
pub(crate) struct StepEvents {
    records: ChunkRecords,
    pub(crate) keys: NameKeys,
    pub(crate) slices: Vec<SliceRecord>,
    pub(crate) steps: Vec<StepRecord>,
    pub(crate) open: Vec<OpenSpan>,
    pub(crate) tokens: Vec<StepTokens>,
    pub(crate) flows: Vec<StepFlow>,
    pub(crate) batch: BatchOfStep,
}

impl StepEvents {
    /// Adds an event if it is in the time range of the pass: a span, a counter value or a flow from the engine to the
    /// workers. The batch is taken only from spans of the pass's step.
    pub(crate) fn add(&mut self, pass: &StepPass<'_>, event: &PlacedEvent<'_>) {
        let process = pass.context.threads[event.thread].process;
        if is_span(event) && pass.time.overlaps(event) {
            self.records.add_event(&pass.context, event);
            if pass.engines[process] == pass.engine && step_number(event) == Some(pass.step) {
                self.add_batch(event);
            }
        } else if event.phase == Phase::Counter && pass.time.contains(event.ts_ns) {
            self.records.add_event(&pass.context, event);
        } else if let Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd = event.phase
            && pass.time.contains(event.ts_ns)
            && event.name() == STEP_FLOW
        {
            self.flows.extend(event.id().map(|id| StepFlow {
                id,
                process,
                ts_ns: event.ts_ns,
                is_start: event.phase == Phase::FlowStart,
            }));
        }
    }

    /// Adds the numbers of requests and tokens in the step's batch, as far as the args of a span contain them.
    fn add_batch(&mut self, event: &PlacedEvent<'_>) {
        let ids = ids(event).len() as u64;
        let count = |name: &str| arg::<u64>(event, name);
        self.batch.add(&BatchOfStep {
            requests: (ids > 0).then_some(ids).or_else(|| count("scheduled")),
            prefill_requests: prefill_requests(event),
            decode_requests: count("decode_requests").or_else(|| count("decode")),
            prefill_tokens: count("prefill_tokens"),
            decode_tokens: count("decode_tokens"),
        });
    }

    /// Adds what the next chunk contains about the step.
    pub(crate) fn merge(&mut self, next: StepEvents) {
        let numbers = self.keys.merge(next.records.keys);
        let slices = next.records.slices.into_iter();
        self.slices.extend(slices.map(|slice| SliceRecord {
            key: numbers[slice.key as usize],
            ..slice
        }));
        let steps = next.records.steps.into_iter();
        self.steps
            .extend(steps.map(|step| step.renumbered(&numbers)));
        self.open.extend(next.records.open);
        self.tokens.extend(next.records.step_tokens);
        self.flows.extend(next.flows);
        self.batch.add(&next.batch);
    }
}

/// A span that is open at the moment.
#[derive(Clone, Debug)]
pub(crate) struct OpenAt {
    pub(crate) thread: usize,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: Option<i64>,
    pub(crate) name: String,
}

impl OpenAt {
    /// Returns the sort key by which the innermost span of a track comes last.
    fn depth(&self) -> (i64, Reverse<i64>) {
        (self.start_ns, Reverse(self.end_ns.unwrap_or(i64::MAX)))
    }
}

/// Events around one moment.
#[derive(Default)]
pub(crate) struct MomentEvents {
    counters: ChunkRecords,
    pub(crate) levels: Levels,
    /// Innermost open span of each track.
    pub(crate) open: BTreeMap<u64, OpenAt>,
}

impl MomentEvents {
    /// Adds an event if it is a counter value from no later than `at_ns`, or a span on a thread or a device track that
    /// was open at that time. Async spans are left out.
    pub(crate) fn add(&mut self, context: &ChunkContext<'_>, at_ns: i64, event: &PlacedEvent<'_>) {
        if event.ts_ns > at_ns {
            return;
        }
        match event.phase {
            Phase::Counter => self.counters.add_event(context, event),
            Phase::Complete | Phase::Begin => {
                let end_ns = span_end(event);
                if end_ns.is_some_and(|end_ns| end_ns <= at_ns) {
                    return;
                }
                let process = context.threads[event.thread].process;
                let event_use = context.devices.event_use(event, process, &event.category());
                let is_lane = context.threads[event.thread].is_lane;
                if event_use == EventUse::Region || event_use == EventUse::Host && is_lane {
                    return;
                }
                let open = OpenAt {
                    thread: event.thread,
                    start_ns: event.ts_ns,
                    end_ns,
                    name: event.name().into_owned(),
                };
                self.add_open(track_id(event, process), open);
            }
            _ => {}
        }
    }

    /// Adds a span that was open at the moment. Only the innermost span of each track is kept.
    fn add_open(&mut self, track: u64, open: OpenAt) {
        let innermost = self.open.entry(track).or_insert_with(|| open.clone());
        if innermost.depth() <= open.depth() {
            *innermost = open;
        }
    }

    /// Adds the counter values and open spans of the next chunk.
    pub(crate) fn merge(&mut self, next: MomentEvents) {
        self.levels.update(next.counters.edges);
        for (track, open) in next.open {
            self.add_open(track, open);
        }
    }
}
