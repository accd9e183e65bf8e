//! What an event says of a request, by the names that recorders give such events (docs/engines.md).

use serde_json::value::RawValue;
use trace_merge::events::PlacedEvent;
use xxhash_rust::xxh3::xxh3_64;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MomentKind {
    /// The frontend's span of it, from its arrival to the last part of the answer.
    Http,
    /// A process's span of it.
    Request,
    /// The span in which the frontend makes a request of what came by HTTP: templates, tokeniser, checks.
    Preprocess,
    Queued,
    Scheduled,
    FirstToken,
    Token,
    Preempted,
    Resumed,
    Finished,
    /// The frontend took in its last output.
    Answered,
    /// A span's end that is an event of its own: it may have args that the begin could not have.
    SpanEnd,
}

/// What an event says of a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestMoment {
    pub(crate) request: u64,
    /// Its process, by number.
    pub(crate) process: usize,
    pub(crate) kind: MomentKind,
    pub(crate) ts_ns: i64,
    /// Of a span that has ended.
    pub(crate) end_ns: Option<i64>,
    pub(crate) args: RequestArgs,
}

/// What args say of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestArgs {
    pub(crate) prompt_tokens: Option<u64>,
    pub(crate) cached_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    /// Why it ended, as vLLM's API calls it: `stop`, `length`, `abort`, `error`.
    pub(crate) reason: Option<String>,
}

impl MomentKind {
    /// That of an event of this name, if it says anything of a request.
    fn of(name: &str, phase: u8) -> Option<MomentKind> {
        let is_span = !matches!(phase, b'i' | b'I' | b'n');
        if matches!(phase, b'E' | b'e') {
            let is_of_request = name == "request" || name.starts_with("http.");
            return is_of_request.then_some(MomentKind::SpanEnd);
        }
        Some(match name {
            "request" if is_span => MomentKind::Request,
            "request.preprocess" if is_span => MomentKind::Preprocess,
            _ if is_span => return name.starts_with("http.").then_some(MomentKind::Http),
            "request.queued" | "queued" => MomentKind::Queued,
            "request.scheduled" | "scheduled" => MomentKind::Scheduled,
            "request.first_token" => MomentKind::FirstToken,
            "request.token" | "token" => MomentKind::Token,
            "request.preempted" | "preempted" => MomentKind::Preempted,
            "request.resumed" | "resumed" => MomentKind::Resumed,
            "request.finished" => MomentKind::Finished,
            "request.answered" => MomentKind::Answered,
            _ => return None,
        })
    }
}

impl RequestArgs {
    fn of(event: &PlacedEvent<'_>) -> RequestArgs {
        let number = |name| serde_json::from_slice(event.arg(name)?).ok();
        RequestArgs {
            prompt_tokens: number("prompt_tokens"),
            cached_tokens: number("cached_tokens"),
            output_tokens: number("output_tokens"),
            reason: event
                .arg("reason")
                .and_then(|reason| serde_json::from_slice(reason).ok()),
        }
    }
}

/// Calls `found` with what an event says of each request, and the request's id.
pub(crate) fn moments(
    event: &PlacedEvent<'_>,
    name: &str,
    process: usize,
    mut found: impl FnMut(RequestMoment, String),
) {
    let Some(kind) = MomentKind::of(name, event.phase) else {
        return;
    };
    let args = RequestArgs::of(event);
    for id in ids(event) {
        let moment = RequestMoment {
            request: xxh3_64(id.as_bytes()),
            process,
            kind,
            ts_ns: event.ts_ns,
            end_ns: event.end_ns(),
            args: args.clone(),
        };
        found(moment, id);
    }
}

/// The ids of the requests that an event is of: a text or a whole number, or a list of them.
pub(crate) fn ids(event: &PlacedEvent<'_>) -> Vec<String> {
    let one = event.arg("request_id").map(|id| vec![id]);
    let many = || serde_json::from_slice::<Vec<&RawValue>>(event.arg("request_ids")?).ok();
    let many = || Some(many()?.into_iter().map(|id| id.get().as_bytes()).collect());
    let written: Vec<&[u8]> = one.or_else(many).unwrap_or_default();
    written.into_iter().filter_map(id).collect()
}

fn id(written: &[u8]) -> Option<String> {
    let number = || serde_json::from_slice::<u64>(written).ok();
    let text = serde_json::from_slice(written).ok();
    text.or_else(|| Some(number()?.to_string()))
}
