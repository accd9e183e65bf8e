//! Events of requests, recognized by the names that recorders give them (docs/engines.md).

use super::reasons::Reasons;
use sa_format::Phase;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::cmp::Reverse;
use trace_merge::events::PlacedEvent;
use trace_store::sorter::Record;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Kind of a moment. Moments of a request at the same time are sorted in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MomentKind {
    /// The frontend's span of the request, from its arrival to the last part of its response.
    Http,
    /// A process's span of the request.
    Request,
    /// The span in which the frontend turns an HTTP request into an engine request: templates, tokenizer, checks.
    Preprocess,
    /// The engine put the request into its queue.
    Queued,
    /// The engine recorded hashes of the prompt's blocks.
    Prompt,
    /// The engine removed the request from its batch.
    Preempted,
    /// The engine put the request into a batch.
    Scheduled,
    /// The engine put a preempted request into a batch again.
    Resumed,
    /// A process received or produced the first token.
    FirstToken,
    /// The first part of the response left the frontend.
    FirstChunk,
    /// The request ended.
    Finished,
    /// The frontend processed the request's last output.
    Answered,
    /// The end of a span, recorded as an event of its own. It may have args that were unknown at the start.
    SpanEnd,
}

/// One event of one request. Sorted, the moments of a request are adjacent and in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestMoment {
    /// Hash of the request's run and id.
    pub(crate) request: u64,
    /// Time of the event. For an HTTP span, it is the time at which the request reached the kernel, if that is known.
    pub(crate) ts_ns: i64,
    pub(crate) kind: MomentKind,
    /// End of a span, or `i64::MAX` if there is none.
    pub(crate) end_ns: Reverse<i64>,
    /// Number of the process.
    pub(crate) process: u32,
    /// Hash of an HTTP span's name, or number of a prompt.
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
    /// Returns the kind of an event with this name, or `None` if it is not about a request.
    fn from_name(name: &str, phase: Phase) -> Option<MomentKind> {
        let is_span = !is_instant(phase);
        if matches!(phase, Phase::End | Phase::AsyncEnd) {
            let is_request = name == "request" || name.starts_with("http.");
            return is_request.then_some(MomentKind::SpanEnd);
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

    /// Returns true if the first moment of a request may be of this kind.
    pub(crate) fn is_begin(self) -> bool {
        self <= MomentKind::Prompt
    }
}

impl RequestMoment {
    /// Returns the end of the moment's span in ns, or `None` if the moment has no span or the span has no end.
    pub(crate) fn end_ns(&self) -> Option<i64> {
        Some(self.end_ns.0).filter(|end_ns| *end_ns != i64::MAX)
    }

    /// Creates the moment at which an engine recorded the block hashes of a request's prompt. `request` is the hash of
    /// the request's run and id, and `prompt` is the number of the prompt.
    pub(crate) fn from_prompt(
        request: u64,
        process: u32,
        ts_ns: i64,
        prompt: u32,
    ) -> RequestMoment {
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
#[derive(Clone, Copy)]
pub(crate) enum RequestEvent {
    Moment(RequestMoment),
    Token(RequestToken),
}

/// The process that recorded an event, with its run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessRun {
    /// Number of the process.
    pub(crate) process: u32,
    /// Number of the process's run, which is part of each request's hash.
    pub(crate) run: u64,
}

/// Returns true if events of this phase have no duration.
pub(super) fn is_instant(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::Instant | Phase::LegacyInstant | Phase::AsyncInstant
    )
}

/// Returns true if an event with this name is a token.
pub(super) fn is_token(name: &str, phase: Phase) -> bool {
    matches!(name, "request.token" | "token") && is_instant(phase)
}

/// Returns the moment or token of an event, without the request's hash, and the ids of its requests. Returns `None` if
/// the event is not about a request.
pub(crate) fn moment(
    event: &PlacedEvent<'_>,
    name: &str,
    process: u32,
    reasons: &mut Reasons,
) -> Option<(RequestEvent, Vec<String>)> {
    if is_token(name, event.phase) {
        let token = RequestToken {
            request: 0,
            ns: event.ts_ns,
            process,
        };
        return Some((RequestEvent::Token(token), ids(event)));
    }
    let kind = MomentKind::from_name(name, event.phase)?;
    let args = RequestArgs::from_event(event, kind == MomentKind::Http, reasons);
    let ts_ns = event.ts_ns.saturating_sub(args.waited_ns);
    let end_ns = event.end_ns().filter(|end_ns| *end_ns >= event.ts_ns);
    // For the client, the request ends when the last part of the response has been sent. The application may continue
    // after that.
    let answered_ns = ns(event, "answered_us").filter(|_| kind == MomentKind::Http);
    let answered_ns = end_ns.and(answered_ns).map(|ns| ts_ns.saturating_add(ns));
    let moment = RequestMoment {
        request: 0,
        ts_ns,
        kind,
        end_ns: Reverse(answered_ns.or(end_ns).unwrap_or(i64::MAX)),
        process,
        tag: match kind {
            MomentKind::Http => u32::try_from(xxh3_64(name.as_bytes()) & 0xffff_ffff).unwrap_or(0),
            _ => 0,
        },
        args,
    };
    Some((RequestEvent::Moment(moment), ids(event)))
}

/// Returns the hash of a request's run and id. The same id in another run is another request.
pub(crate) fn request_key(id: &str, run: u64) -> u64 {
    xxh3_64_with_seed(id.as_bytes(), run)
}

/// Returns the arg `name` of an event, parsed from JSON, or `None` if it is missing or of another type.
pub(crate) fn arg<'e, T: Deserialize<'e>>(event: &'e PlacedEvent<'_>, name: &str) -> Option<T> {
    serde_json::from_slice(event.arg(name)?).ok()
}

/// Returns the ids of the requests that an event names, as a text, a whole number, or a list of these.
pub(crate) fn ids(event: &PlacedEvent<'_>) -> Vec<String> {
    let one = event.arg("request_id").map(|id| vec![id]);
    let many = || {
        let ids: Vec<&RawValue> = arg(event, "request_ids")?;
        Some(ids.into_iter().map(|id| id.get().as_bytes()).collect())
    };
    let written: Vec<&[u8]> = one.or_else(many).unwrap_or_default();
    written.into_iter().filter_map(id).collect()
}

/// Converts a request id from JSON, where it is a text or a whole number. Returns `None` for other values.
fn id(written: &[u8]) -> Option<String> {
    let number = || serde_json::from_slice::<u64>(written).ok();
    let text = serde_json::from_slice(written).ok();
    text.or_else(|| Some(number()?.to_string()))
}

/// Longest plausible time, in µs.
const MOST_US: f64 = 9e15;

/// Args that describe a request. A missing arg is `None` or 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestArgs {
    pub(crate) prompt_tokens: Option<u64>,
    pub(crate) cached_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    /// Number of the reason why the request ended, among [`Reasons`].
    pub(crate) reason: u32,
    /// Time that the request spent in the kernel and the event loop before the application received it.
    pub(crate) waited_ns: i64,
}

impl RequestArgs {
    /// Reads the args of a request's event. The time that the request waited is read only if `is_http` is true. The
    /// finish reason gets a number in `reasons`.
    pub(crate) fn from_event(
        event: &PlacedEvent<'_>,
        is_http: bool,
        reasons: &mut Reasons,
    ) -> RequestArgs {
        let number = |name| arg::<u64>(event, name).filter(|number| *number != u64::MAX);
        let reason = arg::<String>(event, "reason");
        RequestArgs {
            prompt_tokens: number("prompt_tokens"),
            cached_tokens: number("cached_tokens"),
            output_tokens: number("output_tokens"),
            reason: reason.map_or(0, |reason| reasons.number(reason)),
            waited_ns: ns(event, "waited_us").filter(|_| is_http).unwrap_or(0),
        }
    }

    /// Adds the args of another event of the same request. Of two token counts, the larger is kept. A reason of the
    /// other event replaces the present one. The time that the request waited does not change.
    pub(crate) fn add(&mut self, other: &RequestArgs) {
        self.prompt_tokens = self.prompt_tokens.max(other.prompt_tokens);
        self.cached_tokens = self.cached_tokens.max(other.cached_tokens);
        self.output_tokens = self.output_tokens.max(other.output_tokens);
        if other.reason != 0 {
            self.reason = other.reason;
        }
    }
}

/// Returns the arg `name`, a time in µs, in ns, or `None` if it is missing or implausible.
fn ns(event: &PlacedEvent<'_>, name: &str) -> Option<i64> {
    let us = arg(event, name).filter(|us| (0.0..=MOST_US).contains(us));
    us.map(rounded_ns)
}

/// Converts µs to whole ns.
#[expect(
    clippy::cast_possible_truncation,
    reason = "times that exceed the type become its limit"
)]
pub(super) fn rounded_ns(us: f64) -> i64 {
    (us * 1e3).round() as i64
}

/// Length of a piece in bytes. vLLM's ids have 41 bytes, so they fit into one.
const PIECE: usize = 43;

/// A piece of a request's id. Sorted, the pieces of an id are adjacent, without duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamePiece {
    /// Hash of the request's run and id.
    pub(crate) request: u64,
    nth: u32,
    len: u8,
    bytes: [u8; PIECE],
}

impl Record for NamePiece {
    fn join(&mut self, next: &Self) -> bool {
        self == next
    }
}

impl NamePiece {
    /// Splits the request id `id` into pieces of at most 43 bytes. Each piece contains its position and `request`, the
    /// hash of the request's run and id.
    pub(crate) fn split(request: u64, id: &str) -> impl Iterator<Item = NamePiece> {
        let pieces = id.as_bytes().chunks(PIECE);
        pieces.zip(0..).map(move |(piece, nth)| {
            let mut bytes = [0; PIECE];
            bytes[..piece.len()].copy_from_slice(piece);
            NamePiece {
                request,
                nth,
                len: u8::try_from(piece.len()).unwrap_or(0),
                bytes,
            }
        })
    }

    /// Returns the section of the request id that this piece holds, at most 43 bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len).min(PIECE)]
    }
}
