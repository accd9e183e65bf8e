//! The calls of each request as NeMo Agent Toolkit models them. They come from spans that agents recorded, or else from
//! the report.

use crate::gather::request_moment::{arg, ids};
use crate::table::{Request, named_enum};
use sa_format::Phase;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use trace_merge::Error;
use trace_merge::events::{PlacedEvent, TraceEvents};

named_enum! {
    /// Kind of a call. Its name is the category of the spans.
    pub(super) CallKind {
        /// A function of an agent.
        Function = "function",
        /// A call of a model.
        Llm = "llm",
        /// A call of a tool.
        Tool = "tool",
    }
}

/// Token counts of the prompt, of the cached part of the prompt, and of the completion.
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
    /// Id that the start and the end of the call share.
    pub(super) uuid: String,
    /// Index of the calling call in the same request. It is always smaller than this call's index.
    pub(super) parent: Option<usize>,
    pub(super) start_ns: i64,
    /// `None` if the span has no end.
    pub(super) end_ns: Option<i64>,
    pub(super) tokens: CallTokens,
}

/// A span of the category `function`, `llm` or `tool` that names one request.
#[derive(Clone, Debug)]
pub(super) struct AgentSpan {
    request: String,
    /// The arg `span_id`.
    id: Option<String>,
    /// The arg `parent_id`: the `span_id` of the caller.
    parent_id: Option<String>,
    call: Call,
}

/// Identifies a span whose end is a separate event: async id or thread, start, end and name.
type SpanKey = (Result<u64, usize>, i64, i64, String);

#[derive(Default)]
struct Found {
    spans: Vec<(AgentSpan, Option<SpanKey>)>,
    ends: HashMap<SpanKey, CallTokens>,
}

impl CallTokens {
    /// Reads the token counts of a call from the args of an event. A count is `None` if its arg is missing.
    fn from_args(event: &PlacedEvent<'_>) -> CallTokens {
        let count = |name| arg(event, name);
        CallTokens {
            prompt: count("prompt_tokens"),
            cached: count("cached_tokens"),
            completion: count("completion_tokens").or_else(|| count("output_tokens")),
        }
    }
}

impl Call {
    /// Returns the start and the end of the call in ns, or `None` if its span has no end.
    pub(super) fn time(&self) -> Option<(i64, i64)> {
        Some((self.start_ns, self.end_ns?.max(self.start_ns)))
    }
}

impl Found {
    /// Adds an event if it begins an agent's span, or if it ends any span and has token counts.
    fn add(&mut self, event: &PlacedEvent<'_>) {
        let key = |start_ns, end_ns| {
            let is_async = matches!(event.phase, Phase::AsyncBegin | Phase::AsyncEnd);
            let id = event.id().filter(|_| is_async);
            let name = event.name().into_owned();
            (id.ok_or(event.thread), start_ns, end_ns, name)
        };
        match event.phase {
            Phase::Complete | Phase::Begin | Phase::AsyncBegin => {
                let end = || event.other_ns.map(|end_ns| key(event.ts_ns, end_ns));
                let span = AgentSpan::from_event(event);
                self.spans.extend(span.map(|span| (span, end())));
            }
            Phase::End | Phase::AsyncEnd if !event.args().is_empty() => {
                let tokens = CallTokens::from_args(event);
                let start_ns = event.other_ns.filter(|_| tokens != CallTokens::default());
                let end = start_ns.map(|start_ns| (key(start_ns, event.ts_ns), tokens));
                self.ends.extend(end);
            }
            _ => {}
        }
    }
}

impl AgentSpan {
    /// Reads an agent's span from its event. Returns `None` if the category is no kind of call, or if the span does not
    /// name exactly one request.
    fn from_event(event: &PlacedEvent<'_>) -> Option<AgentSpan> {
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
                tokens: CallTokens::from_args(event),
            },
        })
    }
}

/// Reads the spans of agents in the order of their starts. Token counts at the end of a span take precedence over those
/// at its start.
pub(super) fn agent_spans(events: &TraceEvents<'_>) -> Result<Vec<AgentSpan>, Error> {
    let mut all = Found::default();
    events.fold(Found::default, Found::add, |found| {
        all.spans.extend(found.spans);
        all.ends.extend(found.ends);
        Ok(())
    })?;
    let ended = |(mut span, key): (AgentSpan, Option<SpanKey>)| {
        // An end event may have no name.
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

/// Returns the calls of each request, ordered by the start of the request.
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
        let request_spans = by_request.entry(span.request.clone()).or_default();
        request_spans.push(span);
    }
    let without_spans = requests
        .iter()
        .filter(|request| !by_request.contains_key(&*request.request_id));
    let mut all: Vec<Vec<Call>> = without_spans.filter_map(engine_calls).collect();
    let with_spans = by_request.into_values();
    all.extend(with_spans.map(|spans| agent_calls(spans, &shared)));
    all.sort_by(|one, other| order(one).cmp(&order(other)));
    all
}

/// Returns the sort key of a request's calls, the start and id of the first one, or `None` if there are no calls.
fn order(calls: &[Call]) -> Option<(i64, &str)> {
    let first = calls.first()?;
    Some((first.start_ns, &first.uuid))
}

/// Returns the calls of a request without agent spans: a function from its arrival to its end, and a model call for the
/// engine's work, from the queue to the last token.
fn engine_calls(request: &Request) -> Option<Vec<Call>> {
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
    let engine = Call {
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
    Some(whole.into_iter().chain([engine]).collect())
}

/// Returns the calls of agents, ordered by their starts. The parent of a call is the one that its args name, if that
/// comes earlier in this order. An id that several requests use gets the id of its request as a prefix.
fn agent_calls(spans: Vec<AgentSpan>, shared: &HashSet<String>) -> Vec<Call> {
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
