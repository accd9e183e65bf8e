//! Figures of all requests: a summary, its confidence intervals, the parts of the time, and the prefixes that prompts
//! share.

use crate::options::Slo;
use crate::statistics::quantiles::Quantiles;
use serde::Serialize;

/// Requests that met every objective, as vLLM's benchmark counts them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Goodput {
    /// Objectives that the requests had to meet.
    pub slo: Slo,
    /// Number of requests that met them.
    pub requests: u64,
    /// Number of these requests per second, from the first arrival to the last end.
    pub requests_per_s: Option<f64>,
}

/// All requests in a few figures. Each figure covers the requests that have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestSummary {
    /// Number of requests.
    pub n: u64,
    /// Number of requests that were answered.
    pub ok: u64,
    /// Number of requests that were aborted.
    pub aborted: u64,
    /// Number of requests that failed.
    pub failed: u64,
    /// Number of requests without an end.
    pub unfinished: u64,
    /// Answered requests per second, from the first arrival to the last end.
    pub requests_per_s: Option<f64>,
    /// Output tokens of the answered requests per second.
    pub output_tokens_per_s: Option<f64>,
    /// Requests that met the given objectives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Goodput>,
    /// Time from the queue to the first schedule.
    pub queue: Quantiles,
    /// Time from the arrival until the first part of the response left. If the response is sent in one piece, the time
    /// until its first token.
    pub ttft: Quantiles,
    /// Time from the queue to the first token in the engine.
    pub engine_ttft: Quantiles,
    /// Time per output token after the first.
    pub tpot: Quantiles,
    /// Times between tokens, of all requests together.
    pub itl: Quantiles,
    /// Time from the first schedule to the first token.
    pub prefill: Quantiles,
    /// Time from the first token to the last one.
    pub decode: Quantiles,
    /// Time from arrival to the end of answered requests.
    pub e2e: Quantiles,
    /// [`ttft`](Self::ttft) counted from the receipt by the application.
    pub application_ttft: Quantiles,
    /// Time from the receipt by the application to the end, for answered requests.
    pub application_e2e: Quantiles,
    /// Requests whose events are in an impossible order.
    pub out_of_order: OutOfOrder,
    /// Number of requests that started under an id that another request was still using. They are counted as part of
    /// that request.
    pub mixed: u64,
}

/// Requests whose events are in an impossible order, for example because the clocks of two hosts differ. They are left
/// out of each figure that would be negative.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OutOfOrder {
    /// Number of such requests.
    pub requests: u64,
    /// Ids of the first few requests.
    pub request_ids: Vec<String>,
}

/// A figure of the requests, as the screen and the page show it.
#[derive(Serialize)]
pub(crate) struct RequestFigure<'a> {
    pub(crate) name: &'static str,
    pub(crate) meaning: String,
    pub(crate) quantiles: &'a Quantiles,
}

impl RequestSummary {
    /// Returns all figures, including the ones without values. Figures that start in the application are included only
    /// if the arrival in the kernel is known. `is_streamed` is true if the first part of a response is known to have
    /// left after its first token.
    pub(crate) fn figures(&self, is_streamed: bool) -> Vec<RequestFigure<'_>> {
        let is_arrival_known = self.is_arrival_known();
        let from = match is_arrival_known {
            true => "from arrival in the kernel",
            false => "from when the frontend received the request",
        };
        let to_first_token = match (is_streamed, is_arrival_known) {
            (true, _) => "until the first part of the response left",
            (false, true) => "to the first token",
            (false, false) => "to its first token",
        };
        let (ttft, e2e) = (
            format!("{from} {to_first_token}"),
            format!("{from} to the end"),
        );
        let the_same = "the same, but from when the application received the request";
        let figures = [
            (
                "queue",
                &self.queue,
                "from the engine's queue to the first schedule",
            ),
            (
                "prefill",
                &self.prefill,
                "from the first schedule to the first token",
            ),
            ("decode", &self.decode, "from the first token to the last"),
            (
                "TTFT, engine",
                &self.engine_ttft,
                "from the queue to the first token",
            ),
            ("TTFT, frontend", &self.ttft, &ttft),
            ("TTFT, application", &self.application_ttft, the_same),
            ("TPOT", &self.tpot, "time per output token after the first"),
            ("ITL", &self.itl, "time between tokens, over all requests"),
            ("E2E", &self.e2e, &e2e),
            ("E2E, application", &self.application_e2e, the_same),
        ];
        let is_shown = |name: &str| is_arrival_known || !name.ends_with(", application");
        let figures = figures.into_iter().filter(|(name, ..)| is_shown(name));
        let figure = |(name, quantiles, meaning): (&'static str, _, &str)| RequestFigure {
            name,
            meaning: meaning.to_owned(),
            quantiles,
        };
        figures.map(figure).collect()
    }

    /// Returns true if the trace contains the time at which any request reached the kernel.
    pub fn is_arrival_known(&self) -> bool {
        (self.ttft, self.e2e) != (self.application_ttft, self.application_e2e)
    }
}

/// A part of the time of requests, from arrival to end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestPart {
    /// `HTTP`, `preprocess` and `IPC` (or `frontend` for all three), `queue`, `prefill`, `decode`, `return`, `answer`,
    /// or several of them if the trace cannot separate them.
    pub name: String,
    /// Mean duration, in ns.
    pub mean_ns: f64,
    /// Duration in the request at the 99th percentile of E2E, in ns.
    pub p99_ns: i64,
    /// Duration in the slowest request, in ns.
    pub slowest_ns: i64,
}

/// The parts of the time of requests. In each column, they add up to the E2E.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestParts {
    /// Number of requests that arrived and were answered in the trace.
    pub n: u64,
    /// The parts, in the order in which a request goes through them.
    pub parts: Vec<RequestPart>,
    /// Mean E2E, in ns.
    pub e2e_mean_ns: f64,
    /// E2E of the request at the 99th percentile, in ns.
    pub e2e_p99_ns: i64,
    /// E2E of the slowest request, in ns.
    pub e2e_slowest_ns: i64,
    /// Id of the request at the 99th percentile.
    pub p99_id: String,
    /// Id of the slowest request.
    pub slowest_id: String,
}

/// Sequences of phases that requests went through.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Phases {
    /// Number of requests whose queue and end are in the trace.
    pub n: u64,
    /// Sequences, most common first.
    pub sequences: Vec<PhaseSequence>,
}

/// A sequence of phases, and the requests that went through it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseSequence {
    /// Phases, joined by ` → `. Phases after the eighth are replaced by `…`.
    pub sequence: String,
    /// Number of requests with this sequence.
    pub requests: u64,
    /// Share of all requests.
    pub share: f64,
    /// Total time of these requests from the queue to the last token, in ns.
    pub total_ns: i64,
    /// Mean of this time, in ns.
    pub mean_ns: f64,
    /// Mean duration of each phase, in ns.
    pub phase_mean_ns: Vec<f64>,
}

/// Prefixes that prompts of one engine share, and how much of them its prefix cache contained. Only prompts with block
/// hashes count.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Prefixes {
    /// Number of requests that engines scheduled.
    pub requests: u64,
    /// Number of requests whose prompts have block hashes. All other figures cover these requests.
    pub n: u64,
    /// Number of tokens in their prompts.
    pub prompt_tokens: u64,
    /// Number of tokens in full blocks after the hashed ones. The shares and `unique` leave them out.
    pub tokens_without_hash: u64,
    /// Number of tokens that an earlier prompt of the same engine had at the same position, after the same tokens. An
    /// unlimited cache would contain them.
    pub shared_tokens: u64,
    /// `shared_tokens` as a share of the counted tokens.
    pub shared_share: f64,
    /// Number of tokens in hashed blocks that were in the cache, for prompts whose cached tokens are recorded.
    pub cached_tokens: u64,
    /// `cached_tokens` as a share of the tokens of these prompts. `None` if there are no such prompts.
    pub cached_share: Option<f64>,
    /// Number of tokens per prompt that no earlier prompt of its engine had at this position.
    pub unique: TokenQuantiles,
    /// Number of prefixes that several prompts share.
    pub shared: u64,
    /// The hundred prefixes that save the most tokens, in descending order.
    pub prefixes: Vec<Prefix>,
}

/// Distribution of a number of tokens. Percentiles are interpolated linearly between ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TokenQuantiles {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: u64,
}

/// A node of the radix tree of an engine's prompts. Several prompts contain all of its tokens, and fewer or none share
/// one more block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prefix {
    /// Process number of the engine.
    pub engine: usize,
    /// Hash of the last block.
    pub prefix: String,
    /// Number of prompts that start with the prefix.
    pub requests: u64,
    /// Length of the prefix in tokens.
    pub tokens: u64,
    /// Number of tokens after the next shorter prefix, which more prompts share.
    pub own_tokens: u64,
    /// `(requests − 1) · own_tokens`: tokens that all prompts after the first do not have to compute again.
    pub saved_tokens: u64,
    /// `saved_tokens` as a share of the counted tokens of all prompts.
    pub saved_share: f64,
    /// Part of `saved_tokens` that was in the cache. `None` if the trace does not record this for any prompt.
    pub hit_tokens: Option<u64>,
}

/// A quantity whose mean has confidence intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfidenceOf {
    /// [`Request::queue_ns`](crate::Request::queue_ns), in ns.
    Queue,
    /// [`Request::prefill_ns`](crate::Request::prefill_ns), in ns.
    Prefill,
    /// [`Request::decode_ns`](crate::Request::decode_ns), in ns.
    Decode,
    /// [`Request::engine_ttft_ns`](crate::Request::engine_ttft_ns), in ns.
    EngineTtft,
    /// [`Request::ttft_ns`](crate::Request::ttft_ns), in ns.
    Ttft,
    /// [`Request::tpot_ns`](crate::Request::tpot_ns), in ns.
    Tpot,
    /// [`Request::e2e_ns`](crate::Request::e2e_ns), in ns.
    E2e,
    /// Answered requests per second.
    RequestsPerS,
}

/// Method by which an interval was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalMethod {
    /// For a mean: Student's t, with the standard deviation of a sample.
    StudentT,
    /// For a rate: the exact interval of a Poisson distribution (Garwood's) for a count of random events.
    Poisson,
}

/// Confidence intervals of a mean at 90, 95 and 99 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Intervals {
    /// Method by which the intervals were computed.
    pub method: IntervalMethod,
    /// Lower and upper bound at 90 %.
    pub p90: [f64; 2],
    /// Lower and upper bound at 95 %.
    pub p95: [f64; 2],
    /// Lower and upper bound at 99 %.
    pub p99: [f64; 2],
}

/// A mean with its confidence intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Confidence {
    /// Quantity, which also determines the unit.
    pub of: ConfidenceOf,
    /// Number of values.
    pub n: u64,
    /// Mean of the values.
    pub mean: f64,
    /// Confidence intervals. `None` for a single value, which contains no information about the spread.
    pub intervals: Option<Intervals>,
}
