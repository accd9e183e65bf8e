//! Requests → a few figures of all of them.

use super::requests::FoldedRequests;
use crate::options::Slo;
use crate::quantiles::Quantiles;
use crate::table::{Goodput, OutOfOrder, Request, RequestStatus, RequestSummary};

/// Number of ids that are named as examples.
const NAMED: usize = 5;

/// Sums all requests up in a few figures.
pub(crate) fn summary(folded: &FoldedRequests, slo: Option<Slo>) -> RequestSummary {
    let requests = folded.requests.as_slice();
    let of = |figure: fn(&Request) -> Option<i64>| {
        Quantiles::of(requests.iter().filter_map(figure).collect())
    };
    let number = |is_one: &dyn Fn(&Request) -> bool| {
        let found = requests.iter().filter(|request| is_one(request));
        found.count() as u64
    };
    let count = |status| number(&|request| request.status() == status);
    let first_ns = requests.iter().filter_map(Request::begin_ns).min();
    let last_ns = requests.iter().filter_map(Request::finished_ns).max();
    let wall_ns = first_ns.zip(last_ns).map(|(first, last)| last - first);
    let seconds = wall_ns.filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e9);
    let per_s = |number: u64| seconds.map(|seconds| number as f64 / seconds);
    let ok = count(RequestStatus::Ok);
    let output = requests.iter().filter(|request| request.is_ok());
    let output = output.filter_map(Request::output_tokens);
    let output = output.fold(0, u64::saturating_add);
    let goodput = slo.map(|slo| {
        let requests = number(&|request| request.keeps(&slo));
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
        queue: of(Request::queue_ns),
        ttft: of(Request::ttft_ns),
        engine_ttft: of(Request::engine_ttft_ns),
        tpot: of(Request::tpot_ns),
        itl: folded.itl,
        prefill: of(Request::prefill_ns),
        decode: of(Request::decode_ns),
        e2e: of(Request::e2e_ns),
        application_ttft: of(Request::application_ttft_ns),
        application_e2e: of(Request::application_e2e_ns),
        out_of_order: out_of_order(requests),
        mixed: folded.mixed,
    }
}

fn out_of_order(requests: &[Request]) -> OutOfOrder {
    let found = requests.iter().filter(|request| request.is_out_of_order());
    let ids = found.clone().take(NAMED);
    OutOfOrder {
        requests: found.clone().count() as u64,
        request_ids: ids.map(|request| request.request_id().to_owned()).collect(),
    }
}
