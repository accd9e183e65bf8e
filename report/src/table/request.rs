//! A request.

use crate::options::Slo;
use std::sync::Arc;

named_enum! {
    /// Outcome of a request.
    pub RequestStatus {
        /// The request was answered.
        Ok = "ok",
        /// The client gave up, or the request was cancelled.
        Aborted = "aborted",
        /// The request failed.
        Failed = "failed",
        /// The end of the request is not in the trace.
        Unfinished = "unfinished",
    }
}

/// Parts of the time of a request, in order.
pub(crate) const PARTS: [&str; 10] = [
    "socket",
    "HTTP",
    "preprocess",
    "IPC",
    "frontend",
    "queue",
    "prefill",
    "decode",
    "return",
    "answer",
];

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Id of the request. Several requests may have used it, one after the other.
    pub request_id: Box<str>,
    /// Number of the process at which the request arrived: its frontend, or its engine if no frontend recorded it.
    pub process: Option<usize>,
    /// Outcome of the request.
    pub status: RequestStatus,
    /// Finish reason, in vLLM's terms.
    pub reason: Option<Arc<str>>,
    /// Time at which the request reached the kernel of the frontend's host. If this is unknown, time at which the
    /// application received it.
    pub arrival_ns: Option<i64>,
    /// Time at which the application received the request: the start of its HTTP span, or else of its first span.
    pub received_ns: Option<i64>,
    /// Time at which the frontend had read the request and began to preprocess it. vLLM's own figures start here.
    pub read_ns: Option<i64>,
    /// Time at which the request was ready for the engine.
    pub preprocessed_ns: Option<i64>,
    /// Time at which the engine put the request into its queue.
    pub queued_ns: Option<i64>,
    /// Time at which the request was first scheduled.
    pub scheduled_ns: Option<i64>,
    /// Time at which the engine produced the first token.
    pub engine_first_token_ns: Option<i64>,
    /// Time at which the frontend received the first token.
    pub first_token_ns: Option<i64>,
    /// Time at which the first part of the response left the frontend.
    pub first_chunk_ns: Option<i64>,
    /// Time of the last token. If tokens are not recorded, time at which the engine ended the request.
    pub last_token_ns: Option<i64>,
    /// Time at which the frontend processed the last output. vLLM's own E2E ends here.
    pub answered_ns: Option<i64>,
    /// End of the span that started at the arrival.
    pub finished_ns: Option<i64>,
    /// Number of prompt tokens.
    pub prompt_tokens: Option<u64>,
    /// Number of prompt tokens that were in the cache.
    pub cached_tokens: Option<u64>,
    /// Number of output tokens.
    pub output_tokens: Option<u64>,
    /// Number of preemptions.
    pub preemptions: u64,
    /// Total time for which the request was preempted, in ns, without the time to recompute lost tokens.
    pub preempted_ns: i64,
}

impl Request {
    /// Returns true if the request was answered.
    pub(crate) fn is_ok(&self) -> bool {
        self.status == RequestStatus::Ok
    }

    /// Returns true if the request was answered within the objectives. A request with one output token has no TPOT, so
    /// only the other objectives are checked.
    pub fn meets(&self, slo: &Slo) -> bool {
        let within = |limit: Option<i64>, found: Option<i64>| {
            limit.is_none_or(|limit_ns| found.is_some_and(|found_ns| found_ns <= limit_ns))
        };
        let tpot_ns = self
            .tpot_ns()
            .or((self.output_tokens == Some(1)).then_some(0));
        self.is_ok()
            && within(slo.ttft_ns, self.ttft_ns())
            && within(slo.tpot_ns, tpot_ns)
            && within(slo.e2e_ns, self.e2e_ns())
    }

    /// Returns the time from the request's arrival to its end, in ns. Returns `None` if one of them is unknown or they
    /// are out of order.
    pub fn e2e_ns(&self) -> Option<i64> {
        between(self.arrival_ns, self.finished_ns)
    }

    /// Returns [`e2e_ns`](Self::e2e_ns) if the request was answered. The time until a request failed or was aborted is
    /// not an E2E.
    pub(crate) fn answered_e2e_ns(&self) -> Option<i64> {
        self.e2e_ns().filter(|_| self.is_ok())
    }

    /// Returns the time from the receipt by the application to the request's end, in ns. Returns `None` if one of them
    /// is unknown or they are out of order.
    pub fn application_e2e_ns(&self) -> Option<i64> {
        between(self.received_ns, self.finished_ns)
    }

    /// Returns the time to first token in ns: from the arrival until the first part of the response left. If the
    /// response is sent in one piece, the time until its first token. Returns `None` if it is unknown.
    pub fn ttft_ns(&self) -> Option<i64> {
        between(self.arrival_ns, self.ttft_end_ns())
    }

    /// Returns the time to first token in ns, counted from the time at which the application received the request.
    /// Returns `None` if it is unknown.
    pub fn application_ttft_ns(&self) -> Option<i64> {
        between(self.received_ns, self.ttft_end_ns())
    }

    /// Returns the end of the time to first token in ns: the time at which the first part of a streamed response left,
    /// or else of the first token in the frontend. Returns `None` if neither is known.
    pub fn ttft_end_ns(&self) -> Option<i64> {
        let (token_ns, finished_ns) = (self.first_token_ns, self.finished_ns);
        // A response in one piece leaves at its end. A chunk before the first token belongs to another prompt of the
        // same HTTP request.
        let is_streamed = |chunk_ns: &i64| {
            token_ns.is_none_or(|token_ns| token_ns <= *chunk_ns)
                && finished_ns.is_none_or(|finished_ns| *chunk_ns < finished_ns)
        };
        self.first_chunk_ns.filter(is_streamed).or(token_ns)
    }

    /// Returns the time from the entry into the engine's queue to the engine's first token, in ns, or `None` if it is
    /// unknown. It depends on the engine alone.
    pub fn engine_ttft_ns(&self) -> Option<i64> {
        between(self.queued_ns, self.engine_first_token_ns)
    }

    /// Returns the time from the entry into the engine's queue to the first schedule, in ns, or `None` if it is
    /// unknown.
    pub fn queue_ns(&self) -> Option<i64> {
        between(self.queued_ns, self.scheduled_ns)
    }

    /// Returns the time from the first schedule to the first token, in ns, or `None` if it is unknown.
    pub fn prefill_ns(&self) -> Option<i64> {
        between(self.scheduled_ns, self.any_first_token_ns())
    }

    /// Returns the time from the first token to the last one, in ns, or `None` if it is unknown.
    pub fn decode_ns(&self) -> Option<i64> {
        between(self.any_first_token_ns(), self.last_token_ns)
    }

    /// Returns the time per output token after the first in ns, as the clients of vLLM and SGLang compute it. Returns
    /// `None` if the request has only one token, if its token count, first token or end is unknown, or if the times are
    /// out of order.
    pub fn tpot_ns(&self) -> Option<i64> {
        let more = i64::try_from(self.output_tokens?.checked_sub(1)?).ok()?;
        between(self.first_token_ns, self.finished_ns)?.checked_div(more)
    }

    /// Returns true if events are in an impossible order, for example because the clocks of two hosts differ. Figures
    /// between such events are missing.
    pub fn is_out_of_order(&self) -> bool {
        let first_token_ns = self.any_first_token_ns();
        let pairs = [
            (self.queued_ns, self.scheduled_ns),
            (self.queued_ns, self.engine_first_token_ns),
            (self.scheduled_ns, first_token_ns),
            (first_token_ns, self.last_token_ns),
            (self.received_ns, self.first_token_ns),
            (self.first_token_ns, self.finished_ns),
        ];
        let mut ranges = pairs.into_iter().filter_map(|(from, to)| from.zip(to));
        ranges.any(|(from_ns, to_ns)| to_ns < from_ns)
    }

    /// Returns the arrival, or else the time at which the engine queued the request.
    pub(crate) fn begin_ns(&self) -> Option<i64> {
        self.arrival_ns.or(self.queued_ns)
    }

    /// Returns the start and end of the time in which the request was in flight, in ns. If its end is not in the trace,
    /// the time ends at `last_ns`. Returns `None` if the begin is unknown or the time is empty.
    pub(crate) fn in_flight_ns(&self, last_ns: i64) -> Option<(i64, i64)> {
        let (from_ns, to_ns) = (self.begin_ns()?, self.finished_ns.unwrap_or(last_ns));
        (from_ns < to_ns).then_some((from_ns, to_ns))
    }

    /// Returns the time of the first token in the engine, or else in the frontend, in ns. Returns `None` if neither is
    /// known.
    pub(crate) fn any_first_token_ns(&self) -> Option<i64> {
        self.engine_first_token_ns.or(self.first_token_ns)
    }

    /// Returns the parts of the time from arrival to end, each with its name and its duration in ns. A part whose end
    /// is not in the trace is joined with the next one. Returns `None` if the arrival or the end is not in the trace.
    pub fn parts(&self) -> Option<Vec<(String, i64)>> {
        let (mut parts, mut name) = (Vec::new(), String::new());
        for (part, dur_ns) in self.part_times()? {
            if !name.is_empty() {
                name.push_str(" + ");
            }
            name.push_str(part);
            parts.extend(dur_ns.map(|dur_ns| (std::mem::take(&mut name), dur_ns)));
        }
        Some(parts)
    }

    /// Returns the duration of one part of the request's time in ns, by its name, such as `queue`. It includes the
    /// parts before it whose ends are not in the trace. Returns `None` if the request does not have the part, or if the
    /// part's end or the request's arrival or end is not in the trace.
    pub fn part_ns(&self, name: &str) -> Option<i64> {
        let mut parts = self.part_times()?;
        parts.find(|(part, _)| *part == name)?.1
    }

    /// Returns each part of the time from arrival to end, with the time since the last part whose end is in the trace.
    /// A part whose own end is not in the trace has no time.
    fn part_times(&self) -> Option<impl Iterator<Item = (&'static str, Option<i64>)>> {
        let (arrival_ns, finished_ns) = (self.arrival_ns?, self.finished_ns?);
        let socket = self.received_ns.filter(|ns| *ns > arrival_ns);
        let (has_read, has_answer) = (self.read_ns.is_some(), self.answered_ns.is_some());
        let ends = [
            (socket.is_some(), socket),
            (has_read, self.read_ns),
            (has_read, self.preprocessed_ns),
            (has_read, self.queued_ns),
            (!has_read, self.queued_ns),
            (true, self.scheduled_ns),
            (true, self.any_first_token_ns()),
            (true, self.last_token_ns),
            (has_answer, self.answered_ns),
            (true, Some(finished_ns)),
        ];
        let mut from_ns = arrival_ns;
        let ends = PARTS.into_iter().zip(ends);
        let ends = ends.filter(|(_, (is_part, _))| *is_part);
        Some(ends.map(move |(name, (_, end_ns))| {
            let dur_ns = end_ns.map(|end_ns| {
                // With two clocks, times may appear to be in another order.
                let end_ns = end_ns.min(finished_ns).max(from_ns);
                end_ns - std::mem::replace(&mut from_ns, end_ns)
            });
            (name, dur_ns)
        }))
    }
}

/// Returns the time between two moments in ns, or `None` if one is unknown or they are out of order.
fn between(from: Option<i64>, to: Option<i64>) -> Option<i64> {
    let ns = to?.saturating_sub(from?);
    (ns >= 0).then_some(ns)
}
