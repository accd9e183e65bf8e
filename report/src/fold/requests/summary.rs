//! Summarizes requests in a few figures, with their confidence intervals and the parts of the requests' time.

use super::FoldedRequests;
use crate::intervals::{mean_intervals, rate_intervals};
use crate::options::Slo;
use crate::statistics::quantiles::Quantiles;
use crate::table::{
    Confidence, ConfidenceOf, Goodput, OutOfOrder, PARTS, Request, RequestPart, RequestParts,
    RequestStatus, RequestSummary, ServingTime,
};

/// Maximum number of ids that are listed as examples.
const NAMED: usize = 5;

/// Summarizes all requests in a few figures. Rates leave out the pauses of the serving time.
pub(crate) fn summary(
    folded: &FoldedRequests,
    slo: Option<Slo>,
    serving: &ServingTime,
) -> RequestSummary {
    let requests = folded.requests.as_slice();
    let quantiles = |figure: fn(&Request) -> Option<i64>| {
        Quantiles::from_values(requests.iter().filter_map(figure).collect())
    };
    let number = |is_one: &dyn Fn(&Request) -> bool| {
        let found = requests.iter().filter(|request| is_one(request));
        found.count() as u64
    };
    let count = |status| number(&|request| request.status == status);
    let first_ns = requests.iter().filter_map(Request::begin_ns).min();
    let last_ns = requests
        .iter()
        .filter_map(|request| request.finished_ns)
        .max();
    // An unfinished request may follow the last end, after a pause.
    let pauses = serving.pauses.iter();
    let pauses = pauses.filter(|pause| last_ns.is_some_and(|last_ns| pause.to_ns <= last_ns));
    let paused_ns: i64 = pauses.map(|pause| pause.to_ns - pause.from_ns).sum();
    let wall_ns = first_ns
        .zip(last_ns)
        .map(|(first, last)| last - first - paused_ns);
    let seconds = wall_ns.filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e9);
    let per_s = |number: u64| seconds.map(|seconds| number as f64 / seconds);
    let ok = count(RequestStatus::Ok);
    let output = requests.iter().filter(|request| request.is_ok());
    let output = output.filter_map(|request| request.output_tokens);
    let output = output.fold(0, u64::saturating_add);
    let goodput = slo.map(|slo| {
        let requests = number(&|request| request.meets(&slo));
        Goodput {
            slo,
            requests,
            requests_per_s: per_s(requests),
        }
    });
    RequestSummary {
        goodput,
        n: requests.len() as u64,
        ok,
        aborted: count(RequestStatus::Aborted),
        failed: count(RequestStatus::Failed),
        unfinished: count(RequestStatus::Unfinished),
        requests_per_s: per_s(ok),
        output_tokens_per_s: per_s(output).filter(|_| output > 0),
        queue: quantiles(Request::queue_ns),
        ttft: quantiles(Request::ttft_ns),
        engine_ttft: quantiles(Request::engine_ttft_ns),
        tpot: quantiles(Request::tpot_ns),
        itl: folded.itl,
        prefill: quantiles(Request::prefill_ns),
        decode: quantiles(Request::decode_ns),
        e2e: quantiles(Request::answered_e2e_ns),
        application_ttft: quantiles(Request::application_ttft_ns),
        application_e2e: quantiles(|request| {
            request.application_e2e_ns().filter(|_| request.is_ok())
        }),
        out_of_order: out_of_order(requests),
        mixed: folded.mixed,
    }
}

fn out_of_order(requests: &[Request]) -> OutOfOrder {
    let found = requests.iter().filter(|request| request.is_out_of_order());
    let ids = found.clone().take(NAMED);
    OutOfOrder {
        requests: found.clone().count() as u64,
        request_ids: ids.map(|request| request.request_id.to_string()).collect(),
    }
}

/// Returns the parts of the time of answered requests.
pub(crate) fn request_parts(requests: &[Request]) -> RequestParts {
    let answered = requests.iter().filter(|request| request.is_ok());
    let mut timed: Vec<(i64, &Request)> = answered
        .filter_map(|request| Some((request.e2e_ns()?, request)))
        .collect();
    timed.sort_unstable_by(|one, other| {
        (one.0, &one.1.request_id).cmp(&(other.0, &other.1.request_id))
    });
    let Some((slowest_ns, slowest)) = timed.last() else {
        return RequestParts::default();
    };
    let nth = (timed.len() * 99).div_ceil(100).max(1) - 1;
    let (p99_ns, p99) = timed[nth];
    let part_ns = |request: &Request, name: &str| {
        let mut parts = request.parts().unwrap_or_default().into_iter();
        let part = parts.find(|(part, _)| part == name);
        part.map_or(0, |(_, ns)| ns)
    };
    let mut sums: Vec<(String, i128)> = Vec::new();
    let parts = timed.iter().filter_map(|(_, request)| request.parts());
    for (name, ns) in parts.flatten() {
        match sums.iter_mut().find(|(other, _)| *other == name) {
            Some((_, sum)) => *sum += i128::from(ns),
            None => sums.push((name, i128::from(ns))),
        }
    }
    sums.sort_by_key(|(name, _)| {
        let first = name.split(" + ").next().unwrap_or_default();
        (PARTS.iter().position(|part| *part == first), name.len())
    });
    let n = timed.len() as f64;
    let part = |(name, sum): (String, i128)| RequestPart {
        mean_ns: sum as f64 / n,
        p99_ns: part_ns(p99, &name),
        slowest_ns: part_ns(slowest, &name),
        name,
    };
    let whole: i128 = timed.iter().map(|(e2e_ns, _)| i128::from(*e2e_ns)).sum();
    RequestParts {
        n: timed.len() as u64,
        parts: sums.into_iter().map(part).collect(),
        e2e_mean_ns: whole as f64 / n,
        e2e_p99_ns: p99_ns,
        e2e_slowest_ns: *slowest_ns,
        p99_id: p99.request_id.to_string(),
        slowest_id: slowest.request_id.to_string(),
    }
}

/// Returns the confidence intervals of each figure that any request has. Times between tokens are left out, because the
/// times of one request depend on each other.
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
    let of_means = means.map(|(of, values)| Confidence {
        of,
        n: values.n,
        mean: values.mean_ns,
        intervals: mean_intervals(values),
    });
    let rate = summary.requests_per_s.filter(|_| summary.ok > 0);
    let rate = rate.map(|rate| Confidence {
        of: ConfidenceOf::RequestsPerS,
        n: summary.ok,
        mean: rate,
        intervals: rate_intervals(rate, summary.ok),
    });
    of_means.chain(rate).collect()
}
