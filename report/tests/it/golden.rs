//! Reference inputs and what other programs, or plain arithmetic, make of them.

use crate::reports::{fixture, name_time, only, report, report_with};
use serde_json::{Value, json};
use trace_report::{ConfidenceOf, IntervalMethod, ReportOptions, parse_slo};

fn of_file(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(fixture(name)).unwrap()).unwrap()
}

#[track_caller]
fn is_near(found: f64, expected: &Value, bound: f64, what: &str) {
    let off = found - expected.as_f64().unwrap();
    assert!(off.abs() < bound, "{what}: {found} {expected}");
}

/// Checks a time in ns against one in ms, to the rounding of floats.
#[track_caller]
fn is_ms(found_ns: f64, ms: &Value, what: &str) {
    is_near(found_ns / 1e6, ms, 1e-6, what);
}

/// Checks a time in ns against one in s.
#[track_caller]
fn is_s(found_ns: f64, s: &Value, what: &str) {
    is_near(found_ns / 1e9, s, 1e-9, what);
}

/// vLLM's definitions, by hand.
#[test]
fn requests_are_those_of_the_definitions() {
    let report = report(fixture("serving.json"));
    let expected = of_file("serving.expected.json");
    let summary = &report.requests;
    assert_eq!((summary.n, summary.ok), (4, 4));
    for request in &report.request {
        let id = &*request.request_id;
        for (key, figure) in [
            ("ttft_ms", request.ttft_ns()),
            ("e2el_ms", request.e2e_ns()),
            ("tpot_ms", request.tpot_ns()),
            ("queue_ms", request.queue_ns()),
            ("prefill_ms", request.prefill_ns()),
            ("decode_ms", request.decode_ns()),
        ] {
            let of = &expected["per_request"][id][key];
            assert_eq!(figure.is_none(), of.is_null(), "{id} {key}");
            if let Some(ns) = figure {
                is_ms(ns as f64, of, key);
            }
        }
        let parts = request.parts().unwrap();
        let sum: i64 = parts.iter().map(|(_, ns)| ns).sum();
        assert_eq!(Some(sum), request.e2e_ns(), "{parts:?}");
    }
    let parts = &report.request_parts;
    let mean_ns: f64 = parts.parts.iter().map(|part| part.mean_ns).sum();
    assert!((mean_ns - parts.e2e_mean_ns).abs() < 1.0, "{parts:?}");
    let slowest_ns: i64 = parts.parts.iter().map(|part| part.slowest_ns).sum();
    assert_eq!(slowest_ns, summary.e2e.max_ns);
    for (key, figure) in [
        ("ttft_ms", &summary.ttft),
        ("tpot_ms", &summary.tpot),
        ("itl_ms", &summary.itl),
        ("e2el_ms", &summary.e2e),
        ("queue_ms", &summary.queue),
        ("prefill_ms", &summary.prefill),
        ("decode_ms", &summary.decode),
    ] {
        let of = &expected["summary"][key];
        assert_eq!(figure.n, of["n"].as_u64().unwrap(), "{key}");
        is_ms(figure.mean_ns, &of["mean"], key);
        is_ms(figure.p50_ns, &of["median"], key);
        is_ms(figure.p90_ns, &of["p90"], key);
        is_ms(figure.p99_ns, &of["p99"], key);
    }
    for (key, found) in [
        ("request_throughput_rps", summary.requests_per_s),
        ("output_throughput_tps", summary.output_tokens_per_s),
    ] {
        is_near(found.unwrap(), &expected[key], 1e-6, key);
    }
}

/// By Student's t of three degrees of freedom, by hand. Times between tokens depend on each other, and have none.
#[test]
fn few_requests_say_little_of_a_mean() {
    let report = report(fixture("serving.json"));
    let of = |of| report.confidence.iter().find(|found| found.of == of);
    let e2e = of(ConfidenceOf::E2e).unwrap();
    let found = e2e.intervals.unwrap();
    assert_eq!((e2e.n, found.method), (4, IntervalMethod::StudentT));
    assert!((e2e.mean - report.requests.e2e.mean_ns).abs() < 1e-3);
    let ms = [found.p90, found.p95, found.p99].map(|of| of.map(|ns| (ns / 1e3).round() / 1e3));
    assert_eq!(ms, [[49.419, 77.931], [44.396, 82.954], [28.286, 99.064]]);
    let rate = of(ConfidenceOf::RequestsPerS).unwrap();
    assert_eq!(Some(rate.mean), report.requests.requests_per_s);
    // Half of chi-square of eight and of ten degrees of freedom, of four requests.
    let found = rate.intervals.unwrap();
    assert_eq!(found.method, IntervalMethod::Poisson);
    let counts = found.p95.map(|of| (of / rate.mean * 4e3).round() / 1e3);
    assert_eq!(counts, [1.090, 10.242]);
    // A single token has no time per token.
    assert_eq!(of(ConfidenceOf::Tpot).map(|of| of.n), Some(3));
    assert_eq!(report.confidence.len(), 8, "{:?}", report.confidence);
}

/// Requests that keep every objective, a single token's time per token being none.
#[test]
fn good_requests_are_those_of_the_definitions() {
    let expected = &of_file("serving.expected.json")["goodput"];
    let [ttft, tpot, e2e] = ["ttft_ms", "tpot_ms", "e2el_ms"].map(|key| &expected["slo"][key]);
    let slo = parse_slo(&format!("ttft={ttft}ms,tpot={tpot}ms,e2e={e2e}ms")).unwrap();
    let options = ReportOptions {
        slo: Some(slo),
        ..ReportOptions::default()
    };
    let found = report_with(fixture("serving.json"), &options);
    let goodput = found.requests.goodput.unwrap();
    let good = found.request.iter().filter(|request| request.keeps(&slo));
    let good: Vec<&str> = good.map(|request| &*request.request_id).collect();
    assert_eq!(json!(good), expected["good_requests"]);
    assert_eq!(goodput.requests, 2);
    let rate = goodput.requests_per_s.unwrap();
    is_near(rate, &expected["goodput_rps"], 1e-6, "goodput");
}

/// What NAT's nested stack says where calls nest: self times and durations.
#[test]
fn times_of_names_are_those_of_a_nested_stack() {
    let report = report(fixture("nat-nested.json"));
    let expected = of_file("nat-nested.expected.json");
    let expected = expected.as_object().unwrap();
    assert_eq!(report.names.len(), expected.len());
    for (name, of) in expected {
        let found = name_time(&report, name);
        assert_eq!(found.ncall, of["ncall"].as_u64().unwrap(), "{name}");
        is_s(found.tsub_ns as f64, &of["self_s"], name);
        let all_ns = found.duration.mean_ns * found.ncall as f64;
        is_s(all_ns, &of["duration_s"], name);
    }
}

/// Figures of NAT's simple stack: calls, mean and percentiles of durations, maximum concurrency. In these traces, NAT does not count a call that starts exactly
/// when another one ends as concurrent with it. We never do.
#[test]
fn bottlenecks_are_those_of_a_simple_stack() {
    let options = ReportOptions {
        concurrency: true,
        ..ReportOptions::default()
    };
    for (file, name, ncall, figures_s, most) in [
        ("nat-nested.json", "llm-a", 4, [3.0, 3.85, 3.97], 3),
        ("nat-nested.json", "llm-b", 1, [1.0, 1.0, 1.0], 1),
        ("nat-nested.json", "search", 3, [13.0 / 6.0, 2.9, 2.98], 3),
        ("nat-overlap.json", "llm-a", 5, [2.8, 4.0, 4.0], 2),
    ] {
        let report = report_with(fixture(file), &options);
        let found = name_time(&report, name);
        let counts = (found.ncall, found.max_concurrency);
        assert_eq!(counts, (ncall, Some(most)), "{file} {name}");
        let of = &found.duration;
        for (ns, s) in [of.mean_ns, of.p95_ns, of.p99_ns]
            .into_iter()
            .zip(figures_s)
        {
            is_s(ns, &json!(s), name);
        }
    }
}

/// HolisticTraceAnalysis: idle time, communication, and how much of it computing hides. It counts copies as neither; here only communication is told apart.
#[test]
fn devices_are_those_of_holistic_trace_analysis() {
    // Rank, idle µs, µs of kernels that compute nothing, overlap in percent; a copy of 40 µs lies beside nothing.
    for (rank, idle_us, not_computing_us, overlap) in [(0, 231, 119, 47.33), (1, 111, 239, 33.67)] {
        let report = report(fixture(&format!("hta-rank-{rank}.json")));
        let device = only(&report.device);
        let idle_ns = device.wall_ns - device.busy_ns;
        assert_eq!((idle_ns, device.wall_ns), (1_000 * idle_us, 830_000));
        let exposed_ns = device.exposed_communication_ns;
        assert_eq!(exposed_ns, 1_000 * (not_computing_us - 40));
        let hidden_ns = device.communication_ns - exposed_ns;
        let found = 100.0 * hidden_ns as f64 / device.communication_ns as f64;
        assert!((found - overlap).abs() < 0.005, "rank {rank}: {found}");
    }
}
