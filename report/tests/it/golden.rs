//! Reference inputs and what other programs, or plain arithmetic, make of them.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use trace_merge::{Options, Progress};
use trace_report::{
    ConfidenceOf, IntervalMethod, Quantiles, ReportOptions, RunReport, parse_slo, read,
};

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

pub(crate) fn report(path: PathBuf) -> RunReport {
    report_with(path, &ReportOptions::default())
}

fn report_with(path: PathBuf, options: &ReportOptions) -> RunReport {
    read(&Options::new([path]), options, &Progress::default()).unwrap()
}

/// Writes a Chrome trace with these events.
pub(crate) fn trace(lines: &[Value]) -> NamedTempFile {
    let file = NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(file.path(), json!({ "traceEvents": lines }).to_string()).unwrap();
    file
}

/// The report of a Chrome trace with these events.
pub(crate) fn of_lines(lines: &[Value]) -> RunReport {
    report(trace(lines).path().to_owned())
}

pub(crate) fn of_lines_with(lines: &[Value], options: &ReportOptions) -> RunReport {
    report_with(trace(lines).path().to_owned(), options)
}

fn of_file(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(fixture(name)).unwrap()).unwrap()
}

/// Floats that differ by no more than rounding.
fn is_near(ns: f64, ms: &Value) -> bool {
    (ns / 1e6 - ms.as_f64().unwrap()).abs() < 1e-6
}

/// vLLM's definitions, by hand.
#[test]
fn requests_are_those_of_the_definitions() {
    let (report, expected) = (
        report(fixture("serving.json")),
        of_file("serving.expected.json"),
    );
    assert_eq!((report.requests.n, report.requests.ok), (4, 4));
    for request in &report.request {
        let id = request.request_id();
        let of = &expected["per_request"][id];
        let figures = [
            ("ttft_ms", request.ttft_ns()),
            ("e2el_ms", request.e2e_ns()),
            ("tpot_ms", request.tpot_ns()),
            ("queue_ms", request.queue_ns()),
            ("prefill_ms", request.prefill_ns()),
            ("decode_ms", request.decode_ns()),
        ];
        for (key, figure) in figures {
            let is_same = figure.map_or(of[key].is_null(), |ns| is_near(ns as f64, &of[key]));
            assert!(is_same, "{id} {key}: {figure:?} {}", of[key]);
        }
        let parts = request.parts().unwrap();
        let sum: i64 = parts.iter().map(|(_, ns)| ns).sum();
        assert_eq!(Some(sum), request.e2e_ns(), "{parts:?}");
    }
    let parts = &report.request_parts;
    let mean_ns: f64 = parts.parts.iter().map(|part| part.mean_ns).sum();
    assert!((mean_ns - parts.e2e_mean_ns).abs() < 1.0, "{parts:?}");
    let slowest_ns: i64 = parts.parts.iter().map(|part| part.slowest_ns).sum();
    assert_eq!(slowest_ns, report.requests.e2e.max_ns);
    let summary = &report.requests;
    let figures: [(&str, &Quantiles); 7] = [
        ("ttft_ms", &summary.ttft),
        ("tpot_ms", &summary.tpot),
        ("itl_ms", &summary.itl),
        ("e2el_ms", &summary.e2e),
        ("queue_ms", &summary.queue),
        ("prefill_ms", &summary.prefill),
        ("decode_ms", &summary.decode),
    ];
    for (key, figure) in figures {
        let of = &expected["summary"][key];
        assert_eq!(figure.n, of["n"].as_u64().unwrap(), "{key}");
        for (name, ns) in [
            ("mean", figure.mean_ns),
            ("median", figure.p50_ns),
            ("p90", figure.p90_ns),
            ("p99", figure.p99_ns),
        ] {
            assert!(is_near(ns, &of[name]), "{key} {name}: {ns} {}", of[name]);
        }
    }
    let near = |found: Option<f64>, key: &str| {
        (found.unwrap() - expected[key].as_f64().unwrap()).abs() < 1e-6
    };
    assert!(near(summary.requests_per_s, "request_throughput_rps"));
    assert!(near(summary.output_tokens_per_s, "output_throughput_tps"));
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
    let expected = [
        (found.p90, [49.419, 77.931]),
        (found.p95, [44.396, 82.954]),
        (found.p99, [28.286, 99.064]),
    ];
    for (found, expected_ms) in expected {
        let ms = found.map(|ns| (ns / 1e3).round() / 1e3);
        assert_eq!(ms, expected_ms);
    }
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
    let good: Vec<&str> = good.map(|request| request.request_id()).collect();
    assert_eq!(json!(good), expected["good_requests"]);
    assert_eq!(goodput.requests, 2);
    let rate = expected["goodput_rps"].as_f64().unwrap();
    assert!((goodput.requests_per_s.unwrap() - rate).abs() < 1e-6);
}

/// What NAT's nested stack says where calls nest: self times and durations.
#[test]
fn self_times_are_those_of_a_nested_stack() {
    let report = report(fixture("nat-nested.json"));
    let found: BTreeMap<&str, (u64, i64, f64)> = report
        .names
        .iter()
        .map(|name| {
            (
                name.name.as_str(),
                (name.ncall, name.tsub_ns, name.duration.mean_ns),
            )
        })
        .collect();
    let expected = of_file("nat-nested.expected.json");
    let expected = expected.as_object().unwrap();
    assert_eq!(found.len(), expected.len());
    for (name, of) in expected {
        let (ncall, tsub_ns, mean_ns) = found[name.as_str()];
        assert_eq!(ncall, of["ncall"].as_u64().unwrap(), "{name}");
        let all_s = of["duration_s"].as_f64().unwrap();
        assert!(
            (tsub_ns as f64 / 1e9 - of["self_s"].as_f64().unwrap()).abs() < 1e-9,
            "{name}"
        );
        assert!(
            (mean_ns / 1e9 * ncall as f64 - all_s).abs() < 1e-9,
            "{name}"
        );
    }
}

/// The report of a fixture, with how many slices of a name there were at once.
fn with_concurrency(name: &str) -> RunReport {
    let options = ReportOptions {
        concurrency: true,
        ..ReportOptions::default()
    };
    report_with(fixture(name), &options)
}

/// NAT's simple stack: calls, mean and percentiles of durations, the most at once. It counts calls that touch as one behind the other here, as we always do.
#[test]
fn bottlenecks_are_those_of_a_simple_stack() {
    let expected = [
        ("nat-nested.json", "llm-a", 4, [3.0, 3.85, 3.97], 3),
        ("nat-nested.json", "llm-b", 1, [1.0, 1.0, 1.0], 1),
        ("nat-nested.json", "search", 3, [13.0 / 6.0, 2.9, 2.98], 3),
        ("nat-overlap.json", "llm-a", 5, [2.8, 4.0, 4.0], 2),
    ];
    for (file, name, ncall, figures, most) in expected {
        let report = with_concurrency(file);
        let found = report.names.iter().find(|of| of.name == name).unwrap();
        assert_eq!(
            (found.ncall, found.max_concurrency),
            (ncall, Some(most)),
            "{file} {name}"
        );
        let of = &found.duration;
        for (ns, seconds) in [of.mean_ns, of.p95_ns, of.p99_ns].into_iter().zip(figures) {
            assert!(
                (ns / 1e9 - seconds).abs() < 1e-9,
                "{file} {name}: {ns} {seconds}"
            );
        }
    }
}

/// NAT's nested stack, by path: self time and time with what lies in it.
#[test]
fn stacks_are_those_of_a_nested_stack() {
    let report = report(fixture("nat-nested.json"));
    let path = |mut at: usize| {
        let mut names = vec![report.stacks[at].name.as_str()];
        while let Some(parent) = report.stacks[at].parent {
            at = parent;
            names.insert(0, &report.stacks[at].name);
        }
        names.join(" ")
    };
    let found: BTreeMap<String, (u64, i64, i64)> = (0..report.stacks.len())
        .map(|at| {
            let of = &report.stacks[at];
            (
                path(at),
                (of.ncall, of.tsub_ns / 1_000_000, of.ttot_ns / 1_000_000),
            )
        })
        .collect();
    let expected = [
        ("generate", (3, 8_000, 26_500)),
        ("generate llm-a", (4, 12_000, 12_000)),
        ("generate search", (3, 5_500, 6_500)),
        ("generate search llm-b", (1, 1_000, 1_000)),
    ];
    let expected = expected.map(|(path, of)| (path.to_owned(), of));
    assert_eq!(found, BTreeMap::from(expected));
}

/// Calls that overlap have rows of their own, whatever their args say of parents: the caller's self time has the second one, of 2 s to 6 s, only where it lies beside the first.
/// NAT takes the first for the parent of the others, and gives a root of 10 s a subtree of 13 s. By the ids of the parents it would be 3 s.
#[test]
fn calls_that_overlap_are_not_in_each_other() {
    let report = report(fixture("nat-overlap.json"));
    let tsub_ms = |name: &str| {
        let found = report.names.iter().find(|of| of.name == name).unwrap();
        (found.tsub_ns / 1_000_000, found.ttot_ns / 1_000_000)
    };
    assert_eq!(tsub_ms("llm-a"), (14_000, 14_000));
    assert_eq!(tsub_ms("generate"), (4_000, 10_000));
}

/// HolisticTraceAnalysis: idle time, communication, and how much of it computing hides. It counts copies as neither; here only communication is told apart.
#[test]
fn devices_are_those_of_holistic_trace_analysis() {
    // Rank, idle µs, µs of kernels that compute nothing, overlap in percent; a copy of 40 µs lies beside nothing.
    for (rank, idle_us, not_computing_us, overlap) in [(0, 231, 119, 47.33), (1, 111, 239, 33.67)] {
        let report = report(fixture(&format!("hta-rank-{rank}.json")));
        let [device] = report.device.as_slice() else {
            panic!("{:?}", report.device)
        };
        assert_eq!(
            device.wall_ns - device.busy_ns,
            1_000 * idle_us,
            "rank {rank}"
        );
        assert_eq!(device.wall_ns, 830_000);
        assert_eq!(
            device.exposed_communication_ns,
            1_000 * (not_computing_us - 40)
        );
        let hidden_ns = device.communication_ns - device.exposed_communication_ns;
        let found = 100.0 * hidden_ns as f64 / device.communication_ns as f64;
        assert!((found - overlap).abs() < 0.005, "rank {rank}: {found}");
    }
}

/// A thread that waits: its time on the CPU stands beside that of the wall.
#[test]
fn cpu_time_stands_beside_wall_time() {
    let span = |ts: u64, dur: u64, tdur: u64, name: &str| json!({"ph": "X", "pid": 1, "tid": 1, "ts": ts, "dur": dur, "tts": 0, "tdur": tdur, "name": name});
    let found = of_lines(&[
        span(0, 100, 30, "outer"),
        span(10, 60, 5, "waits"),
        json!({"ph": "X", "pid": 1, "tid": 1, "ts": 72, "dur": 20, "name": "plain"}),
    ]);
    let of = |name: &str| {
        let time = found.names.iter().find(|of| of.name == name).unwrap();
        (time.tsub_ns, time.tsub_cpu_ns, time.ttot_cpu_ns)
    };
    // Nothing is known of `plain`, and `outer` never has more CPU time than time by itself.
    assert_eq!(of("outer"), (20_000, Some(20_000), Some(30_000)));
    assert_eq!(of("waits"), (60_000, Some(5_000), Some(5_000)));
    assert_eq!(of("plain"), (20_000, None, None));
    assert!(trace_report::screen::text(&found).contains("on CPU"));
}
