//! All requests together: a few figures, how certain these are, where the time went, and what the prompts have in common.

use crate::options::Slo;
use crate::statistics::quantiles::Quantiles;
use serde::Serialize;

/// Requests that kept every objective, as vLLM's benchmark counts them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Goodput {
    /// The objectives.
    pub slo: Slo,
    /// How many requests kept them.
    pub requests: u64,
    /// How many of those a second, from the first arrival to the last end.
    pub requests_per_s: Option<f64>,
}

/// All requests in a few figures. A figure is of those requests that have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestSummary {
    /// How many there are.
    pub n: u64,
    /// How many were answered.
    pub ok: u64,
    /// How many were given up.
    pub aborted: u64,
    /// How many failed.
    pub failed: u64,
    /// How many have no end.
    pub unfinished: u64,
    /// Requests answered in a second, from the first arrival to the last end.
    pub requests_per_s: Option<f64>,
    /// Output tokens of these requests per second.
    pub output_tokens_per_s: Option<f64>,
    /// Those that kept the objectives which were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Goodput>,
    /// From the queue to the first schedule.
    pub queue: Quantiles,
    /// From arrival until the first part of the answer left; for an answer in one piece, until its first token.
    pub ttft: Quantiles,
    /// From the queue to the first token in the engine.
    pub engine_ttft: Quantiles,
    /// Time per output token behind the first.
    pub tpot: Quantiles,
    /// Times between tokens, those of all requests together.
    pub itl: Quantiles,
    /// From the first schedule to the first token.
    pub prefill: Quantiles,
    /// From the first token to the last one.
    pub decode: Quantiles,
    /// Time from arrival to the end of answered requests.
    pub e2e: Quantiles,
    /// [`ttft`](Self::ttft) from when the application got the request.
    pub application_ttft: Quantiles,
    /// Time from when the application got the request to the end, for answered requests.
    pub application_e2e: Quantiles,
    /// Requests whose moments are in an impossible order.
    pub out_of_order: OutOfOrder,
    /// Number of requests that began under an id which another request was still using. They are counted as part of that request.
    pub mixed: u64,
}

/// Requests whose moments are in an impossible order, for example because the clocks of two hosts differ. They are left out of each figure that would be negative.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OutOfOrder {
    /// Number of such requests.
    pub requests: u64,
    /// Ids of the first few.
    pub request_ids: Vec<String>,
}

/// A figure of the requests, as screen and page show it.
#[derive(Serialize)]
pub(crate) struct RequestFigure<'a> {
    pub(crate) name: &'static str,
    pub(crate) meaning: String,
    pub(crate) quantiles: &'a Quantiles,
}

impl RequestSummary {
    /// Returns all figures, including the ones without values. It includes the figures that begin in the application only if the arrival in the kernel is known.
    /// `is_streamed` is true if the first part of an answer is known to have left after its first token.
    pub(crate) fn figures(&self, is_streamed: bool) -> Vec<RequestFigure<'_>> {
        let is_arrival_known = self.is_arrival_known();
        let from = match is_arrival_known {
            true => "from arrival in the kernel",
            false => "from when the frontend got it",
        };
        let to_first_token = match (is_streamed, is_arrival_known) {
            (true, _) => "until the first part of the answer left",
            (false, true) => "to the first token",
            (false, false) => "to its first token",
        };
        let (ttft, e2e) = (
            format!("{from} {to_first_token}"),
            format!("{from} to the end"),
        );
        let the_same = "the same, from when the application got it";
        let figures = [
            (
                "queue",
                &self.queue,
                "from the engine's queue to the first schedule",
            ),
            ("prefill", &self.prefill, "from there to the first token"),
            ("decode", &self.decode, "from the first token to the last"),
            (
                "TTFT, engine",
                &self.engine_ttft,
                "from the queue to the first token",
            ),
            ("TTFT, frontend", &self.ttft, &ttft),
            ("TTFT, application", &self.application_ttft, the_same),
            ("TPOT", &self.tpot, "per output token after the first"),
            ("ITL", &self.itl, "between tokens, of all requests together"),
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

    /// Returns true if the trace says of any request when it reached the kernel.
    pub fn is_arrival_known(&self) -> bool {
        (self.ttft, self.e2e) != (self.application_ttft, self.application_e2e)
    }
}

/// A part of the way of a request, from its arrival to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestPart {
    /// `HTTP`, `preprocess` and `IPC` (or `frontend`, which is all three), `queue`, `prefill`, `decode`, `return`, `answer`, or several of them if the trace cannot separate them.
    pub name: String,
    /// Of the mean request.
    pub mean_ns: f64,
    /// Of the request that is slower than 99 in 100.
    pub p99_ns: i64,
    /// Of the slowest one.
    pub slowest_ns: i64,
}

/// The parts of the time of requests. In each column they add up to the whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestParts {
    /// Requests that arrived and were answered in the trace.
    pub n: u64,
    /// The parts, in the order of the way.
    pub parts: Vec<RequestPart>,
    /// The whole time of the mean request, in ns.
    pub e2e_mean_ns: f64,
    /// The whole time of the request that is slower than 99 in 100, in ns.
    pub e2e_p99_ns: i64,
    /// The whole time of the slowest request, in ns.
    pub e2e_slowest_ns: i64,
    /// The id of the request that is slower than 99 in 100.
    pub p99_id: String,
    /// The id of the slowest request.
    pub slowest_id: String,
}

/// The orders of phases that requests went through.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Phases {
    /// Requests whose queue and end are in the trace.
    pub n: u64,
    /// The orders, the most common one first.
    pub sequences: Vec<PhaseSequence>,
}

/// An order of phases, and the requests that went through it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseSequence {
    /// The phases with ` → ` between them. Phases after the eighth are replaced by `…`.
    pub sequence: String,
    /// Number of requests that went through it.
    pub requests: u64,
    /// Their share of all.
    pub share: f64,
    /// From the queue to the last token, of all of them, in ns.
    pub total_ns: i64,
    /// Of the mean one.
    pub mean_ns: f64,
    /// Each phase of the mean one, in ns.
    pub phase_mean_ns: Vec<f64>,
}

/// The prefixes that prompts of one engine share, and how much of them its prefix cache had. Only prompts with block hashes count.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Prefixes {
    /// Requests that engines scheduled.
    pub requests: u64,
    /// Requests whose prompts have block hashes. All other figures are about these.
    pub n: u64,
    /// Tokens of their prompts.
    pub prompt_tokens: u64,
    /// Tokens of full blocks that come after the hashed blocks. The shares, and `unique`, leave them out.
    pub tokens_without_hash: u64,
    /// Tokens that an earlier prompt of the same engine had in the same place, after the same tokens. A cache without limits would have them.
    pub shared_tokens: u64,
    /// The same as a share.
    pub shared_share: f64,
    /// Tokens of hashed blocks that the cache had, for prompts where the trace says this.
    pub cached_tokens: u64,
    /// The same as a share of the tokens of these prompts; `None` if there are no such prompts.
    pub cached_share: Option<f64>,
    /// Tokens of each prompt that no earlier one of its engine had there.
    pub unique: TokenQuantiles,
    /// Number of prefixes that several prompts have.
    pub shared: u64,
    /// The hundred prefixes that save the most tokens, in that order.
    pub prefixes: Vec<Prefix>,
}

/// How a number of tokens is distributed. Percentiles are linear between ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TokenQuantiles {
    /// Of the mean prompt.
    pub mean: f64,
    /// Half of them have at most this.
    pub p50: f64,
    /// Nine in ten.
    pub p90: f64,
    /// 95 in 100.
    pub p95: f64,
    /// 99 in 100.
    pub p99: f64,
    /// Of the prompt that has most.
    pub max: u64,
}

/// A node of the radix tree of an engine's prompts: several prompts have all of its tokens, and fewer, if any, have one block more in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prefix {
    /// The engine, by number.
    pub engine: usize,
    /// The hash of its last block.
    pub prefix: String,
    /// Prompts that begin with it.
    pub requests: u64,
    /// Its length in tokens.
    pub tokens: u64,
    /// Tokens after the next shorter prefix, which more prompts have.
    pub own_tokens: u64,
    /// `(requests − 1) · own_tokens`: what the second and all further prompts need not compute again.
    pub saved_tokens: u64,
    /// The same as a share of the tokens of all prompts that count.
    pub saved_share: f64,
    /// Part of `saved_tokens` that the cache had; `None` if the trace does not say this for any prompt.
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
    /// Requests answered in a second.
    RequestsPerS,
}

/// How an interval was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalMethod {
    /// Student's t, with the standard deviation of a sample: of a mean.
    StudentT,
    /// The exact interval of a Poisson distribution (Garwood's): of a count of events that come by chance, and so of a rate.
    Poisson,
}

/// Confidence intervals of a mean at 90, 95 and 99 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Intervals {
    /// How they were found.
    pub method: IntervalMethod,
    /// From and to, with 90 %.
    pub p90: [f64; 2],
    /// With 95 %.
    pub p95: [f64; 2],
    /// With 99 %.
    pub p99: [f64; 2],
}

/// A mean, and how uncertain it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Confidence {
    /// The quantity, which also determines the unit.
    pub of: ConfidenceOf,
    /// Number of values.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// The confidence intervals. `None` for a single value, because it says nothing about the spread.
    pub intervals: Option<Intervals>,
}
