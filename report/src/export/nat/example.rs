//! Requests as examples: the unit of NeMo Agent Toolkit's analysis.

use super::call::Call;
use crate::export::call_span::{CallKind, CallSpan};
use crate::table::request::Request;
use std::collections::{HashMap, HashSet};

/// A request and its calls, in the order of their begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Example {
    pub(super) calls: Vec<Call>,
}

/// One of each request, in the order in which they begin. What agents recorded of a request counts; of one without any, what a report knows of it.
pub(super) fn examples(requests: &[Request], spans: &[CallSpan]) -> Vec<Example> {
    let mut of_agents: HashMap<&str, Vec<&CallSpan>> = HashMap::new();
    for span in spans {
        of_agents.entry(&span.request).or_default().push(span);
    }
    let of_report = requests
        .iter()
        .filter(|request| !of_agents.contains_key(request.request_id()));
    let of_report: Vec<Example> = of_report.filter_map(Example::of_request).collect();
    let shared = shared_ids(spans);
    let of_agents = of_agents.values();
    let of_agents = of_agents.map(|spans| Example::of_spans(spans, &shared));
    let mut all: Vec<Example> = of_agents.chain(of_report).collect();
    all.sort_by(|one, other| one.order().cmp(&other.order()));
    all
}

impl Example {
    fn order(&self) -> Option<(i64, &str)> {
        let first = self.calls.first()?;
        Some((first.start_ns, &first.uuid))
    }

    /// The request as a function, from arrival to the end, and what the engine did of it as the call of a model, from its queue to its last token.
    fn of_request(request: &Request) -> Option<Example> {
        let call = |kind, name: &str, uuid: String, start_ns, end_ns| Call {
            kind,
            name: name.to_owned(),
            uuid,
            parent: None,
            start_ns,
            end_ns,
            prompt_tokens: None,
            cached_tokens: None,
            completion_tokens: None,
        };
        let id = request.request_id();
        let whole = request.arrival_ns().map(|arrival_ns| {
            let end_ns = request.finished_ns();
            call(
                CallKind::Function,
                "request",
                id.to_owned(),
                arrival_ns,
                end_ns,
            )
        });
        let start_ns = request.queued_ns().or(request.arrival_ns())?;
        let end_ns = request
            .finished_ns()
            .map(|finished_ns| request.last_token_ns().unwrap_or(finished_ns));
        let of_engine = Call {
            parent: whole.as_ref().map(|_| 0),
            prompt_tokens: request.prompt_tokens(),
            cached_tokens: request.cached_tokens(),
            completion_tokens: request.output_tokens(),
            ..call(
                CallKind::Llm,
                "engine",
                format!("{id}/engine"),
                start_ns,
                end_ns,
            )
        };
        Some(Example {
            calls: whole.into_iter().chain([of_engine]).collect(),
        })
    }

    /// Spans in the order of their begins. Parents are those that args name, never those that times suggest. Ids that other requests have too get the request's before them.
    fn of_spans(spans: &[&CallSpan], shared: &HashSet<&str>) -> Example {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for (number, span) in spans.iter().enumerate() {
            if let Some(id) = &span.id {
                numbers.entry(id).or_insert(number);
            }
        }
        let call = |(number, span): (usize, &&CallSpan)| Call {
            kind: span.kind,
            name: span.name.clone(),
            uuid: match &span.id {
                Some(id) if shared.contains(id.as_str()) => format!("{}/{id}", span.request),
                Some(id) if numbers[id.as_str()] == number => id.clone(),
                _ => format!("{}/{number}", span.request),
            },
            parent: span
                .parent
                .as_ref()
                .and_then(|parent| numbers.get(parent.as_str()).copied()),
            start_ns: span.start_ns,
            end_ns: span.end_ns,
            prompt_tokens: span.tokens.prompt,
            cached_tokens: span.tokens.cached,
            completion_tokens: span.tokens.completion,
        };
        let mut calls: Vec<Call> = spans.iter().enumerate().map(call).collect();
        cut_circles(&mut calls);
        Example { calls }
    }

    /// How many calls each one lies in.
    pub(super) fn depths(&self) -> Vec<usize> {
        let mut depths = vec![None; self.calls.len()];
        for number in 0..self.calls.len() {
            let mut way = Vec::new();
            let mut at = Some(number);
            while let Some(call) = at.filter(|call| depths[*call].is_none()) {
                way.push(call);
                at = self.calls[call].parent;
            }
            let first = at.and_then(|call| depths[call]);
            let first = first.map_or(0, |depth| depth + 1);
            for (depth, call) in (first..).zip(way.into_iter().rev()) {
                depths[call] = Some(depth);
            }
        }
        depths.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// The function that each call is, or lies in.
    pub(super) fn functions(&self, depths: &[usize]) -> Vec<Option<usize>> {
        let mut order: Vec<usize> = (0..self.calls.len()).collect();
        order.sort_by_key(|number| depths[*number]);
        let mut functions = vec![None; self.calls.len()];
        for number in order {
            let call = &self.calls[number];
            functions[number] = match call.kind {
                CallKind::Function => Some(number),
                CallKind::Llm | CallKind::Tool => call.parent.and_then(|parent| functions[parent]),
            };
        }
        functions
    }

    /// From its first begin to its last end; `None` while a call of it has no end.
    pub(super) fn run_time_ns(&self) -> Option<i64> {
        let times: Option<Vec<(i64, i64)>> = self.calls.iter().map(Call::time).collect();
        let times = times?;
        let from_ns = times.iter().map(|(from_ns, _)| *from_ns).min()?;
        let to_ns = times.iter().map(|(_, to_ns)| *to_ns).max()?;
        Some(to_ns.saturating_sub(from_ns))
    }
}

/// The ids of spans of several requests.
fn shared_ids(spans: &[CallSpan]) -> HashSet<&str> {
    let mut first: HashMap<&str, &str> = HashMap::new();
    let mut shared = HashSet::new();
    for span in spans {
        let Some(id) = &span.id else { continue };
        if *first.entry(id).or_insert(&span.request) != span.request {
            shared.insert(id.as_str());
        }
    }
    shared
}

/// Takes a parent from one call of each circle, as a hostile trace may have.
fn cut_circles(calls: &mut [Call]) {
    // On which walk up each was met first.
    let mut met = vec![0; calls.len()];
    for walk in 1..=calls.len() {
        let mut at = walk - 1;
        while met[at] == 0 {
            met[at] = walk;
            match calls[at].parent {
                Some(parent) if met[parent] == walk => calls[at].parent = None,
                Some(parent) => at = parent,
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::call_span::CallTokens;

    fn span(id: &str, parent: Option<&str>, start_ns: i64) -> CallSpan {
        CallSpan {
            request: "r".to_owned(),
            kind: CallKind::Function,
            name: "f".to_owned(),
            id: Some(id.to_owned()),
            parent: parent.map(str::to_owned),
            start_ns,
            end_ns: Some(start_ns + 10),
            tokens: CallTokens::default(),
        }
    }

    #[test]
    fn circles_are_cut_and_depths_are_counted() {
        let spans = [
            span("a", Some("c"), 0),
            span("b", Some("a"), 1),
            span("c", Some("b"), 2),
            CallSpan {
                kind: CallKind::Tool,
                ..span("d", Some("c"), 3)
            },
            span("e", Some("e"), 4),
            span("f", Some("nobody"), 5),
        ];
        let [example] = examples(&[], &spans).try_into().unwrap();
        let parents: Vec<_> = example.calls.iter().map(|call| call.parent).collect();
        // Up from a: c, b, and a again.
        assert_eq!(parents, [Some(2), None, Some(1), Some(2), None, None]);
        let depths = example.depths();
        assert_eq!(depths, [2, 0, 1, 2, 0, 0]);
        assert_eq!(example.functions(&depths)[3..5], [Some(2), Some(4)]);
        assert_eq!(example.run_time_ns(), Some(15));
    }

    /// Each id joins a begin and an end, and is a key of the metrics.
    #[test]
    fn ids_are_those_of_one_call() {
        let other = |id| CallSpan {
            request: "s".to_owned(),
            ..span(id, Some("a"), 9)
        };
        let spans = [
            span("a", None, 0),
            span("b", Some("a"), 1),
            span("b", Some("a"), 2),
            other("a"),
            other("c"),
        ];
        let found = examples(&[], &spans);
        let calls = found.iter().flat_map(|example| &example.calls);
        let uuids: Vec<&str> = calls.map(|call| call.uuid.as_str()).collect();
        assert_eq!(uuids, ["r/a", "b", "r/2", "s/a", "c"]);
        assert_eq!(found[1].calls[1].parent, Some(0));
    }
}
