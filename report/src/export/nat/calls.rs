//! Requests and their calls, as NeMo Agent Toolkit sees a run: what agents recorded of a request, else what the report has of it.

use crate::gather::request_moment::{arg, ids};
use crate::table::{Request, named_enum};
use sa_format::Phase;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use trace_merge::Error;
use trace_merge::events::{PlacedEvent, TraceEvents};

named_enum! {
    /// The kind of a call. Its name is the category of the spans.
    pub(super) CallKind {
        /// A function of an agent.
        Function = "function",
        /// A model.
        Llm = "llm",
        /// A tool.
        Tool = "tool",
    }
}

/// Token counts: the prompt, the cached part of the prompt, and the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallTokens {
    pub(super) prompt: Option<u64>,
    pub(super) cached: Option<u64>,
    pub(super) completion: Option<u64>,
}

/// A call of a function, a model or a tool.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) kind: CallKind,
    pub(super) name: String,
    /// The id that its begin and its end share.
    pub(super) uuid: String,
    /// The position in the request of the call from which it was made. It is always an earlier one.
    pub(super) parent: Option<usize>,
    pub(super) start_ns: i64,
    /// `None` if it has no end.
    pub(super) end_ns: Option<i64>,
    pub(super) tokens: CallTokens,
}

/// A span of the category `function`, `llm` or `tool` with the id of a request.
#[derive(Clone, Debug)]
pub(super) struct AgentSpan {
    request: String,
    /// The arg `span_id`.
    id: Option<String>,
    /// The arg `parent_id`: the `span_id` of the caller.
    parent_id: Option<String>,
    call: Call,
}

/// A span whose end is an event of its own: its thread or its async id, its begin, its end and its name.
type SpanKey = (Result<u64, usize>, i64, i64, String);

#[derive(Default)]
struct Found {
    spans: Vec<(AgentSpan, Option<SpanKey>)>,
    ends: HashMap<SpanKey, CallTokens>,
}

impl CallTokens {
    fn of(event: &PlacedEvent<'_>) -> CallTokens {
        let count = |name| arg(event, name);
        CallTokens {
            prompt: count("prompt_tokens"),
            cached: count("cached_tokens"),
            completion: count("completion_tokens").or_else(|| count("output_tokens")),
        }
    }
}

impl Call {
    /// Returns its begin and its end, if it ended.
    pub(super) fn time(&self) -> Option<(i64, i64)> {
        Some((self.start_ns, self.end_ns?.max(self.start_ns)))
    }
}

impl Found {
    fn take(&mut self, event: &PlacedEvent<'_>) {
        let key = |start_ns, end_ns| {
            let is_async = matches!(event.phase, Phase::AsyncBegin | Phase::AsyncEnd);
            let id = event.id().filter(|_| is_async);
            let name = event.name().into_owned();
            (id.ok_or(event.thread), start_ns, end_ns, name)
        };
        match event.phase {
            Phase::Complete | Phase::Begin | Phase::AsyncBegin => {
                let end = || event.other_ns.map(|end_ns| key(event.ts_ns, end_ns));
                let span = AgentSpan::of(event);
                self.spans.extend(span.map(|span| (span, end())));
            }
            Phase::End | Phase::AsyncEnd if !event.args().is_empty() => {
                let tokens = CallTokens::of(event);
                let start_ns = event.other_ns.filter(|_| tokens != CallTokens::default());
                let end = start_ns.map(|start_ns| (key(start_ns, event.ts_ns), tokens));
                self.ends.extend(end);
            }
            _ => {}
        }
    }
}

impl AgentSpan {
    fn of(event: &PlacedEvent<'_>) -> Option<AgentSpan> {
        let category = event.category();
        let mut kinds = CallKind::ALL.into_iter();
        let kind = kinds.find(|kind| kind.name() == category)?;
        let [request] = ids(event).try_into().ok()?;
        let text = |name| arg::<String>(event, name);
        Some(AgentSpan {
            request,
            id: text("span_id"),
            parent_id: text("parent_id"),
            call: Call {
                kind,
                name: event.name().into_owned(),
                uuid: String::new(),
                parent: None,
                start_ns: event.ts_ns,
                end_ns: event.end_ns().filter(|_| !event.is_unfinished()),
                tokens: CallTokens::of(event),
            },
        })
    }
}

/// Reads the spans of agents, in the order of their begins. The end of a span may know its tokens better.
pub(super) fn agent_spans(events: &TraceEvents<'_>) -> Result<Vec<AgentSpan>, Error> {
    let mut all = Found::default();
    events.fold(Found::default, Found::take, |found| {
        all.spans.extend(found.spans);
        all.ends.extend(found.ends);
        Ok(())
    })?;
    let ended = |(mut span, key): (AgentSpan, Option<SpanKey>)| {
        // An end may have no name.
        let unnamed = |key: SpanKey| (key.0, key.1, key.2, String::new());
        let find = |key: SpanKey| all.ends.get(&key).or_else(|| all.ends.get(&unnamed(key)));
        let end = key.and_then(find).copied();
        let (begin, end) = (span.call.tokens, end.unwrap_or_default());
        span.call.tokens = CallTokens {
            prompt: end.prompt.or(begin.prompt),
            cached: end.cached.or(begin.cached),
            completion: end.completion.or(begin.completion),
        };
        span
    };
    let mut spans: Vec<AgentSpan> = all.spans.into_iter().map(ended).collect();
    let end_ns = |call: &Call| call.end_ns.unwrap_or(i64::MAX);
    spans.sort_by_key(|span| (span.call.start_ns, Reverse(end_ns(&span.call))));
    Ok(spans)
}

/// Returns the calls of each request, in the order in which the requests begin.
pub(super) fn calls_of_requests(requests: &[Request], spans: Vec<AgentSpan>) -> Vec<Vec<Call>> {
    let (mut first, mut shared) = (HashMap::new(), HashSet::new());
    for span in &spans {
        if let Some(id) = &span.id
            && *first.entry(id.clone()).or_insert(span.request.clone()) != span.request
        {
            shared.insert(id.clone());
        }
    }
    let mut by_request: BTreeMap<String, Vec<AgentSpan>> = BTreeMap::new();
    for span in spans {
        let of_request = by_request.entry(span.request.clone()).or_default();
        of_request.push(span);
    }
    let of_report = requests
        .iter()
        .filter(|request| !by_request.contains_key(&*request.request_id));
    let mut all: Vec<Vec<Call>> = of_report.filter_map(of_request).collect();
    let of_agents = by_request.into_values();
    all.extend(of_agents.map(|spans| of_spans(spans, &shared)));
    all.sort_by(|one, other| order(one).cmp(&order(other)));
    all
}

fn order(calls: &[Call]) -> Option<(i64, &str)> {
    let first = calls.first()?;
    Some((first.start_ns, &first.uuid))
}

/// Returns the calls of a request without spans of agents: a function from arrival to the end, and the engine's work as a call of a model, from the queue to the
/// last token.
fn of_request(request: &Request) -> Option<Vec<Call>> {
    let (id, finished_ns) = (&*request.request_id, request.finished_ns);
    let whole = request.arrival_ns.map(|start_ns| Call {
        kind: CallKind::Function,
        name: "request".to_owned(),
        uuid: id.to_owned(),
        parent: None,
        start_ns,
        end_ns: finished_ns,
        tokens: CallTokens::default(),
    });
    let of_engine = Call {
        kind: CallKind::Llm,
        name: "engine".to_owned(),
        uuid: format!("{id}/engine"),
        parent: whole.as_ref().map(|_| 0),
        start_ns: request.queued_ns.or(request.arrival_ns)?,
        end_ns: finished_ns.map(|ns| request.last_token_ns.unwrap_or(ns)),
        tokens: CallTokens {
            prompt: request.prompt_tokens,
            cached: request.cached_tokens,
            completion: request.output_tokens,
        },
    };
    Some(whole.into_iter().chain([of_engine]).collect())
}

/// Returns the calls of agents, in the order of their begins. A parent is the call that args name, if it comes earlier in this order. An id that several requests use gets the id of its
/// request as a prefix.
fn of_spans(spans: Vec<AgentSpan>, shared: &HashSet<String>) -> Vec<Call> {
    let mut positions: HashMap<String, usize> = HashMap::new();
    let call = |(at, span): (usize, AgentSpan)| {
        let parent = span.parent_id.and_then(|id| positions.get(&id).copied());
        let mut is_new = |id: &String| *positions.entry(id.clone()).or_insert(at) == at;
        let uuid = match span.id {
            Some(id) if is_new(&id) && !shared.contains(&id) => id,
            Some(id) if shared.contains(&id) => format!("{}/{id}", span.request),
            _ => format!("{}/{at}", span.request),
        };
        Call {
            uuid,
            parent,
            ..span.call
        }
    };
    spans.into_iter().enumerate().map(call).collect()
}
