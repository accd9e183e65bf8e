//! The figures of all requests → how little their means may say.

use crate::intervals::{of_mean, of_rate};
use crate::table::{Confidence, ConfidenceOf, RequestSummary};

/// One of each figure that any request has. Times between tokens have none: those of one request are not independent of each other.
pub(crate) fn confidences(summary: &RequestSummary) -> Vec<Confidence> {
    let means = [
        (ConfidenceOf::Queue, &summary.queue),
        (ConfidenceOf::Prefill, &summary.prefill),
        (ConfidenceOf::Decode, &summary.decode),
        (ConfidenceOf::EngineTtft, &summary.engine_ttft),
        (ConfidenceOf::Ttft, &summary.ttft),
        (ConfidenceOf::Tpot, &summary.tpot),
        (ConfidenceOf::E2e, &summary.e2e),
    ];
    let means = means.into_iter().filter(|(_, values)| values.n > 0);
    let of_mean = means.map(|(of, values)| Confidence {
        of,
        n: values.n,
        mean: values.mean_ns,
        intervals: of_mean(values),
    });
    let rate = summary.requests_per_s.filter(|_| summary.ok > 0);
    let of_rate = rate.map(|rate| Confidence {
        of: ConfidenceOf::RequestsPerS,
        n: summary.ok,
        mean: rate,
        intervals: of_rate(rate, summary.ok),
    });
    of_mean.chain(of_rate).collect()
}
