//! `inference_optimization.json`: run times, latencies and throughput, and how little their means may say.

use super::example::Example;
use crate::export::call_span::CallKind;
use crate::intervals::{of_mean_by_nat, of_rate_by_nat};
use crate::quantiles::Quantiles;
use serde_json::{Value, json};

pub(super) fn json(examples: &[Example]) -> Value {
    let run_times = Quantiles::of(examples.iter().filter_map(Example::run_time_ns).collect());
    let calls = examples.iter().flat_map(|example| &example.calls);
    let models = calls.filter(|call| call.kind == CallKind::Llm);
    let latencies = Quantiles::of(models.filter_map(|call| call.dur_ns()).collect());
    json!({
        "confidence_intervals": {
            "workflow_run_time_confidence_intervals": of_times(&run_times),
            "llm_latency_confidence_intervals": of_times(&latencies),
            "throughput_estimate_confidence_interval": throughput(examples),
        },
        // Prompts are not recorded.
        "common_prefixes": null,
        "token_uniqueness": null,
        "workflow_runtimes": (run_times.n > 0).then(|| percentiles(&run_times)),
        "dynamo_metrics": null,
    })
}

/// Times in seconds; `None` where there are none.
fn of_times(times: &Quantiles) -> Option<Value> {
    let seconds = |within: [f64; 2]| within.map(|ns| ns / 1e9);
    let intervals = of_mean_by_nat(times).map(|all| all.map(seconds));
    let figures = with_intervals(times.n, times.mean_ns / 1e9, intervals, Some(times));
    (times.n > 0).then_some(figures)
}

/// Requests that ended, over the time from the first begin to the last end.
fn throughput(examples: &[Example]) -> Option<Value> {
    let ended = examples.iter().filter(|of| of.run_time_ns().is_some());
    let n = ended.clone().count() as u64;
    let times = ended
        .flat_map(|of| &of.calls)
        .filter_map(|call| call.time());
    let from_ns = times.clone().map(|(from_ns, _)| from_ns).min()?;
    let to_ns = times.map(|(_, to_ns)| to_ns).max()?;
    let rate = n as f64 / ((to_ns - from_ns) as f64 / 1e9);
    let figures = with_intervals(n, rate, of_rate_by_nat(rate, n), None);
    (to_ns > from_ns).then_some(figures)
}

fn with_intervals(
    n: u64,
    mean: f64,
    within: Option<[[f64; 2]; 3]>,
    of: Option<&Quantiles>,
) -> Value {
    let percentile = |figure: fn(&Quantiles) -> f64| of.map(|of| figure(of) / 1e9);
    json!({
        "n": n,
        "mean": mean,
        "ninetieth_interval": within.map(|[p90, ..]| p90),
        "ninety_fifth_interval": within.map(|[_, p95, _]| p95),
        "ninety_ninth_interval": within.map(|[.., p99]| p99),
        "p90": percentile(|of| of.p90_ns),
        "p95": percentile(|of| of.p95_ns),
        "p99": percentile(|of| of.p99_ns),
    })
}

fn percentiles(of: &Quantiles) -> Value {
    json!({"p90": of.p90_ns / 1e9, "p95": of.p95_ns / 1e9, "p99": of.p99_ns / 1e9})
}
