//! What an event says of a request, by the names that recorders give such events (docs/engines.md).

use super::reasons::Reasons;
use super::request_args::{self, RequestArgs};
use sa_format::Phase;
use serde_json::value::RawValue;
use std::cmp::Reverse;
use trace_merge::events::PlacedEvent;
use trace_store::sorter::Record;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The kind of a moment. Moments of a request at the same time are in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MomentKind {
    /// The frontend's span of the request, from its arrival to the last part of the answer.
    Http,
    /// A process's span of the request.
    Request,
    /// The span in which the frontend makes a request of what came by HTTP: templates, tokeniser, checks.
    Preprocess,
    /// The engine put the request into its queue.
    Queued,
    /// The engine recorded hashes of the prompt's blocks.
    Prompt,
    /// The engine took the request out of its batch.
    Preempted,
    /// The engine took the request into a batch.
    Scheduled,
    /// The engine took a preempted request into a batch again.
    Resumed,
    /// A process saw the first token.
    FirstToken,
    /// The first part of the answer left the frontend.
    FirstChunk,
    /// The request ended.
    Finished,
    /// The frontend took in the request's last output.
    Answered,
    /// The end of a span, recorded as an event of its own. It may have args that the begin could not have.
    SpanEnd,
}

/// One event of one request. Sorted, the moments of a request are together and in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestMoment {
    /// Hash of the request's run and id.
    pub(crate) request: u64,
    /// Time of the event. An HTTP span counts from the time at which the request reached the kernel, where that is known.
    pub(crate) ts_ns: i64,
    pub(crate) kind: MomentKind,
    /// End of a span; `i64::MAX` if it has none.
    pub(crate) end_ns: Reverse<i64>,
    /// Number of the process.
    pub(crate) process: u32,
    /// Hash of an HTTP span's name, or the number of a prompt.
    pub(crate) tag: u32,
    pub(crate) args: RequestArgs,
}

/// A token of a request, as one process recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestToken {
    /// Hash of the request's run and id.
    pub(crate) request: u64,
    pub(crate) ns: i64,
    /// Number of the process.
    pub(crate) process: u32,
}

impl MomentKind {
    /// Returns the kind of an event with this name, if it says anything of a request.
    fn of(name: &str, phase: Phase) -> Option<MomentKind> {
        let is_span = !is_instant(phase);
        if matches!(phase, Phase::End | Phase::AsyncEnd) {
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
            "http.first_chunk" => MomentKind::FirstChunk,
            "request.preempted" | "preempted" => MomentKind::Preempted,
            "request.resumed" | "resumed" => MomentKind::Resumed,
            "request.finished" => MomentKind::Finished,
            "request.answered" => MomentKind::Answered,
            _ => return None,
        })
    }

    /// Returns true if a request may begin with such a moment.
    pub(crate) fn is_begin(self) -> bool {
        self <= MomentKind::Prompt
    }
}

impl RequestMoment {
    /// Returns the end of a span that has one.
    pub(crate) fn end_ns(&self) -> Option<i64> {
        Some(self.end_ns.0).filter(|end_ns| *end_ns != i64::MAX)
    }

    /// Returns the moment at which an engine recorded the hashes of a prompt.
    pub(crate) fn of_prompt(request: u64, process: u32, ts_ns: i64, prompt: u32) -> RequestMoment {
        RequestMoment {
            request,
            ts_ns,
            kind: MomentKind::Prompt,
            end_ns: Reverse(i64::MAX),
            process,
            tag: prompt,
            args: RequestArgs::default(),
        }
    }
}

impl Record for RequestMoment {}

impl Record for RequestToken {}

/// A moment or a token.
pub(crate) enum RequestEvent {
    Moment(RequestMoment),
    Token(RequestToken),
}

/// The process that recorded an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfProcess {
    /// Its number.
    pub(crate) process: u32,
    /// Number of its run, which is part of each request's hash.
    pub(crate) run: u64,
}

/// Returns true for the phases of events that take no time.
pub(super) fn is_instant(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::Instant | Phase::LegacyInstant | Phase::AsyncInstant
    )
}

/// Calls `found` with what an event says of each request, and the request's id.
pub(crate) fn moments(
    event: &PlacedEvent<'_>,
    name: &str,
    OfProcess { process, run }: OfProcess,
    reasons: &mut Reasons,
    mut found: impl FnMut(RequestEvent, String),
) {
    let is_token = matches!(name, "request.token" | "token");
    if is_token && is_instant(event.phase) {
        for id in ids(event) {
            let token = RequestToken {
                request: request_key(&id, run),
                ns: event.ts_ns,
                process,
            };
            found(RequestEvent::Token(token), id);
        }
        return;
    }
    let Some(kind) = MomentKind::of(name, event.phase) else {
        return;
    };
    let args = RequestArgs::of(event, kind == MomentKind::Http, reasons);
    let ts_ns = event.ts_ns.saturating_sub(args.waited_ns);
    let end_ns = event.end_ns().filter(|end_ns| *end_ns >= event.ts_ns);
    // The client has its answer when the last part of it was sent. The application may go on after that.
    let answered_ns = request_args::ns(event, "answered_us").filter(|_| kind == MomentKind::Http);
    let answered_ns = end_ns.and(answered_ns).map(|ns| ts_ns.saturating_add(ns));
    let end_ns = answered_ns.or(end_ns).unwrap_or(i64::MAX);
    let tag = match kind {
        MomentKind::Http => u32::try_from(xxh3_64(name.as_bytes()) & 0xffff_ffff).unwrap_or(0),
        _ => 0,
    };
    for id in ids(event) {
        let moment = RequestMoment {
            request: request_key(&id, run),
            ts_ns,
            kind,
            end_ns: Reverse(end_ns),
            process,
            tag,
            args,
        };
        found(RequestEvent::Moment(moment), id);
    }
}

/// Returns the hash of a request's run and id. The same id in another run is another request.
pub(crate) fn request_key(id: &str, run: u64) -> u64 {
    xxh3_64_with_seed(id.as_bytes(), run)
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
