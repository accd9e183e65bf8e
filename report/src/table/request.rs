//! A request.

pub(crate) mod optional;
pub(crate) mod prefixes;

use crate::options::Slo;
use optional::{OptionalNs, OptionalTokens};
use serde::Serialize;
use std::sync::Arc;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    /// It was answered.
    Ok,
    /// The client gave up, or it was cancelled.
    Aborted,
    /// It failed.
    Failed,
    /// Its end is not in the trace.
    Unfinished,
}

impl RequestStatus {
    /// Returns its name, as in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            RequestStatus::Ok => "ok",
            RequestStatus::Aborted => "aborted",
            RequestStatus::Failed => "failed",
            RequestStatus::Unfinished => "unfinished",
        }
    }
}

/// Moments of a request, in ns from the start of the trace. A moment that the trace lacks is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTimes {
    /// When the request reached the kernel of the frontend's host; where that is not known, when the application got it.
    pub arrival_ns: Option<i64>,
    /// When the application got the request: the begin of its HTTP span, else of its first span.
    pub received_ns: Option<i64>,
    /// When the frontend had read the request and began to preprocess it: vLLM's own figures begin here.
    pub read_ns: Option<i64>,
    /// When the request was ready for the engine.
    pub preprocessed_ns: Option<i64>,
    /// When the engine put the request into its queue.
    pub queued_ns: Option<i64>,
    /// When the request was first scheduled.
    pub scheduled_ns: Option<i64>,
    /// When the engine saw the first token.
    pub engine_first_token_ns: Option<i64>,
    /// When the frontend saw the first token.
    pub first_token_ns: Option<i64>,
    /// When the first part of the answer left the frontend.
    pub first_chunk_ns: Option<i64>,
    /// When the last token was seen; where tokens are not recorded, when the engine ended the request.
    pub last_token_ns: Option<i64>,
    /// When the frontend took in the last output: vLLM's own E2E ends here.
    pub answered_ns: Option<i64>,
    /// When the span ended that began at the arrival.
    pub finished_ns: Option<i64>,
}

/// Token counts of a request. A count that the trace lacks is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTokens {
    /// Tokens of the prompt.
    pub prompt: Option<u64>,
    /// Tokens of the prompt that the cache had.
    pub cached: Option<u64>,
    /// Tokens of the answer.
    pub output: Option<u64>,
}

/// One request, in a compact form because a run may have millions of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    request_id: Box<str>,
    status: RequestStatus,
    // A pointer to a fat pointer is half as large as that.
    reason: Option<Arc<String>>,
    arrival_ns: OptionalNs,
    received_ns: OptionalNs,
    read_ns: OptionalNs,
    preprocessed_ns: OptionalNs,
    queued_ns: OptionalNs,
    scheduled_ns: OptionalNs,
    engine_first_token_ns: OptionalNs,
    first_token_ns: OptionalNs,
    first_chunk_ns: OptionalNs,
    last_token_ns: OptionalNs,
    answered_ns: OptionalNs,
    finished_ns: OptionalNs,
    prompt_tokens: OptionalTokens,
    cached_tokens: OptionalTokens,
    output_tokens: OptionalTokens,
    preemptions: u32,
    /// Its process; `u32::MAX` if unknown.
    process: u32,
    preempted_ns: i64,
}

impl Request {
    /// Creates a request that was never preempted and has no reason.
    pub fn new(
        request_id: &str,
        status: RequestStatus,
        times: RequestTimes,
        tokens: RequestTokens,
    ) -> Request {
        Request {
            request_id: request_id.into(),
            status,
            reason: None,
            arrival_ns: times.arrival_ns.into(),
            received_ns: times.received_ns.into(),
            read_ns: times.read_ns.into(),
            preprocessed_ns: times.preprocessed_ns.into(),
            queued_ns: times.queued_ns.into(),
            scheduled_ns: times.scheduled_ns.into(),
            engine_first_token_ns: times.engine_first_token_ns.into(),
            first_token_ns: times.first_token_ns.into(),
            first_chunk_ns: times.first_chunk_ns.into(),
            last_token_ns: times.last_token_ns.into(),
            answered_ns: times.answered_ns.into(),
            finished_ns: times.finished_ns.into(),
            prompt_tokens: tokens.prompt.into(),
            cached_tokens: tokens.cached.into(),
            output_tokens: tokens.output.into(),
            preemptions: 0,
            process: u32::MAX,
            preempted_ns: 0,
        }
    }

    /// Sets the reason why the request ended.
    pub(crate) fn with_reason(self, reason: Option<Arc<String>>) -> Request {
        Request { reason, ..self }
    }

    /// Sets how often the request was preempted, and for how long in total.
    pub(crate) fn with_preemptions(self, preemptions: u64, preempted_ns: i64) -> Request {
        Request {
            preemptions: u32::try_from(preemptions).unwrap_or(u32::MAX),
            preempted_ns,
            ..self
        }
    }

    /// Sets the process that it came to.
    pub(crate) fn with_process(self, process: u32) -> Request {
        Request { process, ..self }
    }

    /// Sets the id.
    pub fn with_id(self, request_id: &str) -> Request {
        Request {
            request_id: request_id.into(),
            ..self
        }
    }

    /// Returns the id. Several requests may have used it, one after the other.
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// Returns the process that it came to, by its number among the processes: its frontend, or its engine if no frontend recorded it.
    pub fn process(&self) -> Option<usize> {
        (self.process != u32::MAX).then_some(self.process as usize)
    }

    /// Returns how it ended.
    pub fn status(&self) -> RequestStatus {
        self.status
    }

    /// Returns why it ended, in vLLM's terms.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_ref().map(|reason| reason.as_str())
    }

    /// Returns its moments.
    pub fn times(&self) -> RequestTimes {
        RequestTimes {
            arrival_ns: self.arrival_ns(),
            received_ns: self.received_ns(),
            read_ns: self.read_ns(),
            preprocessed_ns: self.preprocessed_ns(),
            queued_ns: self.queued_ns(),
            scheduled_ns: self.scheduled_ns(),
            engine_first_token_ns: self.engine_first_token_ns(),
            first_token_ns: self.first_token_ns(),
            first_chunk_ns: self.first_chunk_ns(),
            last_token_ns: self.last_token_ns(),
            answered_ns: self.answered_ns(),
            finished_ns: self.finished_ns(),
        }
    }

    /// Returns [`RequestTimes::arrival_ns`].
    pub fn arrival_ns(&self) -> Option<i64> {
        self.arrival_ns.get()
    }

    /// Returns [`RequestTimes::received_ns`].
    pub fn received_ns(&self) -> Option<i64> {
        self.received_ns.get()
    }

    /// Returns [`RequestTimes::read_ns`].
    pub fn read_ns(&self) -> Option<i64> {
        self.read_ns.get()
    }

    /// Returns [`RequestTimes::preprocessed_ns`].
    pub fn preprocessed_ns(&self) -> Option<i64> {
        self.preprocessed_ns.get()
    }

    /// Returns [`RequestTimes::queued_ns`].
    pub fn queued_ns(&self) -> Option<i64> {
        self.queued_ns.get()
    }

    /// Returns [`RequestTimes::scheduled_ns`].
    pub fn scheduled_ns(&self) -> Option<i64> {
        self.scheduled_ns.get()
    }

    /// Returns [`RequestTimes::engine_first_token_ns`].
    pub fn engine_first_token_ns(&self) -> Option<i64> {
        self.engine_first_token_ns.get()
    }

    /// Returns [`RequestTimes::first_token_ns`].
    pub fn first_token_ns(&self) -> Option<i64> {
        self.first_token_ns.get()
    }

    /// Returns [`RequestTimes::first_chunk_ns`].
    pub fn first_chunk_ns(&self) -> Option<i64> {
        self.first_chunk_ns.get()
    }

    /// Returns [`RequestTimes::last_token_ns`].
    pub fn last_token_ns(&self) -> Option<i64> {
        self.last_token_ns.get()
    }

    /// Returns [`RequestTimes::answered_ns`].
    pub fn answered_ns(&self) -> Option<i64> {
        self.answered_ns.get()
    }

    /// Returns [`RequestTimes::finished_ns`].
    pub fn finished_ns(&self) -> Option<i64> {
        self.finished_ns.get()
    }

    /// Returns [`RequestTokens::prompt`].
    pub fn prompt_tokens(&self) -> Option<u64> {
        self.prompt_tokens.get()
    }

    /// Returns [`RequestTokens::cached`].
    pub fn cached_tokens(&self) -> Option<u64> {
        self.cached_tokens.get()
    }

    /// Returns [`RequestTokens::output`].
    pub fn output_tokens(&self) -> Option<u64> {
        self.output_tokens.get()
    }

    /// Returns how often it was preempted.
    pub fn preemptions(&self) -> u64 {
        self.preemptions.into()
    }

    /// Returns the total time for which it was preempted, without the time to compute lost tokens again.
    pub fn preempted_ns(&self) -> i64 {
        self.preempted_ns
    }

    /// Returns true if the request was answered within the objectives. A request with one output token has no time per token, so only the others are checked.
    pub fn keeps(&self, slo: &Slo) -> bool {
        let within = |limit: Option<i64>, found: Option<i64>| {
            limit.is_none_or(|limit_ns| found.is_some_and(|found_ns| found_ns <= limit_ns))
        };
        let tpot_ns = self
            .tpot_ns()
            .or((self.output_tokens() == Some(1)).then_some(0));
        self.status == RequestStatus::Ok
            && within(slo.ttft_ns, self.ttft_ns())
            && within(slo.tpot_ns, tpot_ns)
            && within(slo.e2e_ns, self.e2e_ns())
    }

    /// Returns the time from arrival to the end.
    pub fn e2e_ns(&self) -> Option<i64> {
        between(self.arrival_ns, self.finished_ns)
    }

    /// Returns the time from when the application got the request to the end.
    pub fn application_e2e_ns(&self) -> Option<i64> {
        between(self.received_ns, self.finished_ns)
    }

    /// Returns the time to first token: from arrival until the first part of the answer left; for an answer in one piece, until its first token.
    pub fn ttft_ns(&self) -> Option<i64> {
        between(self.arrival_ns, self.ttft_end_ns().into())
    }

    /// Returns the same time, from when the application got the request.
    pub fn application_ttft_ns(&self) -> Option<i64> {
        between(self.received_ns, self.ttft_end_ns().into())
    }

    /// Returns when the time to first token ends: when the first part of a streamed answer left, else at the first token in the frontend.
    pub fn ttft_end_ns(&self) -> Option<i64> {
        let (token_ns, finished_ns) = (self.first_token_ns(), self.finished_ns());
        // An answer in one piece leaves at its end. A chunk before the first token belongs to another prompt of the same HTTP request.
        let is_streamed = |chunk_ns: &i64| {
            token_ns.is_none_or(|token_ns| token_ns <= *chunk_ns)
                && finished_ns.is_none_or(|finished_ns| *chunk_ns < finished_ns)
        };
        self.first_chunk_ns().filter(is_streamed).or(token_ns)
    }

    /// Returns the time from the queue to the first token in the engine, which depends on the engine alone.
    pub fn engine_ttft_ns(&self) -> Option<i64> {
        between(self.queued_ns, self.engine_first_token_ns)
    }

    /// Returns the time from the queue to the first schedule.
    pub fn queue_ns(&self) -> Option<i64> {
        between(self.queued_ns, self.scheduled_ns)
    }

    /// Returns the time from the first schedule to the first token.
    pub fn prefill_ns(&self) -> Option<i64> {
        between(self.scheduled_ns, self.any_first_token_ns())
    }

    /// Returns the time from the first token to the last one.
    pub fn decode_ns(&self) -> Option<i64> {
        between(self.any_first_token_ns(), self.last_token_ns)
    }

    /// Returns the time per output token after the first, as the clients of vLLM and SGLang compute it. A request with one token has none.
    pub fn tpot_ns(&self) -> Option<i64> {
        let more = i64::try_from(self.output_tokens()?.checked_sub(1)?).ok()?;
        between(self.first_token_ns, self.finished_ns)?.checked_div(more)
    }

    /// Returns true if moments are in an impossible order, for example because the clocks of two hosts differ. The figures between such moments are missing.
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
        let is_backward = |(from, to): &(OptionalNs, OptionalNs)| {
            from.get()
                .zip(to.get())
                .is_some_and(|(from_ns, to_ns)| to_ns < from_ns)
        };
        pairs.iter().any(is_backward)
    }

    /// Returns when the engine saw the first token, or else when the frontend did.
    fn any_first_token_ns(&self) -> OptionalNs {
        self.engine_first_token_ns()
            .or(self.first_token_ns())
            .into()
    }

    /// Returns the parts of the time from arrival to end, each with its name. A part whose end is not in the trace is one with the next.
    /// `None` if the arrival or the end is not in the trace.
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

    /// Returns the duration of a part. It includes the parts before it whose ends are not in the trace.
    pub fn part_ns(&self, name: &str) -> Option<i64> {
        let mut parts = self.part_times()?;
        parts.find(|(part, _)| *part == name)?.1
    }

    /// Returns each part of the time from arrival to end, with the time since the last part whose end is in the trace. A part whose own end is not in the trace has
    /// none.
    fn part_times(&self) -> Option<impl Iterator<Item = (&'static str, Option<i64>)>> {
        let (arrival_ns, finished_ns) = (self.arrival_ns()?, self.finished_ns()?);
        let socket = self.received_ns().filter(|ns| *ns > arrival_ns);
        let (has_read, has_answer) = (self.read_ns().is_some(), self.answered_ns().is_some());
        let ends = [
            (socket.is_some(), "socket", socket),
            (has_read, "HTTP", self.read_ns()),
            (has_read, "preprocess", self.preprocessed_ns()),
            (has_read, "IPC", self.queued_ns()),
            (!has_read, "frontend", self.queued_ns()),
            (true, "queue", self.scheduled_ns()),
            (true, "prefill", self.any_first_token_ns().get()),
            (true, "decode", self.last_token_ns()),
            (has_answer, "return", self.answered_ns()),
            (true, "answer", Some(finished_ns)),
        ];
        let mut from_ns = arrival_ns;
        let ends = ends.into_iter().filter(|(is_part, ..)| *is_part);
        Some(ends.map(move |(_, name, end_ns)| {
            let dur_ns = end_ns.map(|end_ns| {
                // Moments of two clocks may seem to be in another order.
                let end_ns = end_ns.min(finished_ns).max(from_ns);
                end_ns - std::mem::replace(&mut from_ns, end_ns)
            });
            (name, dur_ns)
        }))
    }
}

/// Returns the time between two moments, if they are known and in order.
fn between(from: OptionalNs, to: OptionalNs) -> Option<i64> {
    let ns = to.get()?.saturating_sub(from.get()?);
    (ns >= 0).then_some(ns)
}
