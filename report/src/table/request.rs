//! A request.

pub(crate) mod prefixes;

use crate::options::Slo;
use serde::Serialize;

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

/// One request, as its events tell. All times are ns from the begin of the trace. What is `None` is not in the trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Request {
    /// Its id.
    pub request_id: String,
    /// How it ended.
    pub status: RequestStatus,
    /// Why, as vLLM calls it.
    pub reason: Option<String>,
    /// When the frontend began with it: the begin of its HTTP span, else of its first span.
    pub arrival_ns: Option<i64>,
    /// When the frontend had read it, and began to preprocess it: vLLM's own figures begin here.
    pub read_ns: Option<i64>,
    /// When it was ready for the engine.
    pub preprocessed_ns: Option<i64>,
    /// When the engine put it into its queue.
    pub queued_ns: Option<i64>,
    /// When it was scheduled first.
    pub scheduled_ns: Option<i64>,
    /// When its first token was seen by the engine, and by the frontend.
    pub engine_first_token_ns: Option<i64>,
    /// See there.
    pub first_token_ns: Option<i64>,
    /// When its last token was seen; where tokens are not recorded, when the engine ended it.
    pub last_token_ns: Option<i64>,
    /// When the frontend took in its last output: vLLM's own E2E ends here.
    pub answered_ns: Option<i64>,
    /// When the span ended that began at its arrival.
    pub finished_ns: Option<i64>,
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Those of them that the cache had.
    pub cached_tokens: Option<u64>,
    /// Tokens of the answer.
    pub output_tokens: Option<u64>,
    /// How often it was preempted.
    pub preemptions: u64,
    /// How long it lay there preempted, together. What it then had to compute again comes on top.
    pub preempted_ns: i64,
}

impl Request {
    /// Whether it was answered and kept objectives. A single token has no time per token, and keeps any.
    pub fn keeps(&self, slo: &Slo) -> bool {
        let within = |limit: Option<i64>, found: Option<i64>| {
            limit.is_none_or(|limit_ns| found.is_some_and(|found_ns| found_ns <= limit_ns))
        };
        let tpot_ns = self
            .tpot_ns()
            .or((self.output_tokens == Some(1)).then_some(0));
        self.status == RequestStatus::Ok
            && within(slo.ttft_ns, self.ttft_ns())
            && within(slo.tpot_ns, tpot_ns)
            && within(slo.e2e_ns, self.e2e_ns())
    }

    /// From arrival to the end.
    pub fn e2e_ns(&self) -> Option<i64> {
        Some(self.finished_ns? - self.arrival_ns?)
    }

    /// Time to first token: from arrival to the first token in the frontend.
    pub fn ttft_ns(&self) -> Option<i64> {
        Some(self.first_token_ns? - self.arrival_ns?)
    }

    /// From the queue to the first token in the engine: what the engine itself can answer for.
    pub fn engine_ttft_ns(&self) -> Option<i64> {
        Some(self.engine_first_token_ns? - self.queued_ns?)
    }

    /// From the queue to the first schedule.
    pub fn queue_ns(&self) -> Option<i64> {
        Some(self.scheduled_ns? - self.queued_ns?)
    }

    /// From the first schedule to the first token.
    pub fn prefill_ns(&self) -> Option<i64> {
        let first_ns = self.engine_first_token_ns.or(self.first_token_ns)?;
        Some(first_ns - self.scheduled_ns?)
    }

    /// From the first token to the last one.
    pub fn decode_ns(&self) -> Option<i64> {
        let first_ns = self.engine_first_token_ns.or(self.first_token_ns)?;
        Some(self.last_token_ns? - first_ns)
    }

    /// Where its time from arrival to end went: parts that follow each other, and what they are called. A part whose end is not in the trace is one with the next.
    /// `None` if its arrival or its end is not in the trace.
    pub fn parts(&self) -> Option<Vec<(String, i64)>> {
        let (arrival_ns, finished_ns) = (self.arrival_ns?, self.finished_ns?);
        let frontend: &[_] = match self.read_ns {
            Some(_) => &[
                ("HTTP", self.read_ns),
                ("preprocess", self.preprocessed_ns),
                ("IPC", self.queued_ns),
            ],
            None => &[("frontend", self.queued_ns)],
        };
        let behind = [
            ("queue", self.scheduled_ns),
            (
                "prefill",
                self.engine_first_token_ns.or(self.first_token_ns),
            ),
            ("decode", self.last_token_ns),
        ];
        let back: &[_] = match self.answered_ns {
            Some(_) => &[("return", self.answered_ns), ("answer", Some(finished_ns))],
            None => &[("answer", Some(finished_ns))],
        };
        let (mut parts, mut from_ns, mut name) = (Vec::new(), arrival_ns, String::new());
        for (part, end_ns) in frontend.iter().chain(&behind).chain(back) {
            if !name.is_empty() {
                name.push_str(" + ");
            }
            name.push_str(part);
            // Moments of two clocks may seem to be in another order.
            if let Some(end_ns) = *end_ns {
                let end_ns = end_ns.min(finished_ns).max(from_ns);
                parts.push((std::mem::take(&mut name), end_ns - from_ns));
                from_ns = end_ns;
            }
        }
        Some(parts)
    }

    /// Time per output token behind the first, as vLLM's and SGLang's clients compute it. None of a single token.
    pub fn tpot_ns(&self) -> Option<i64> {
        let more = i64::try_from(self.output_tokens?.checked_sub(1)?).ok()?;
        (self.e2e_ns()? - self.ttft_ns()?).checked_div(more)
    }
}
