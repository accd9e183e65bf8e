//! All requests in a few figures.

use crate::options::Slo;
use crate::quantiles::Quantiles;
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
    /// Their tokens in a second.
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
    /// From arrival to the end.
    pub e2e: Quantiles,
    /// [`ttft`](Self::ttft) from when the application got the request.
    pub application_ttft: Quantiles,
    /// From when the application got the request to the end.
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
