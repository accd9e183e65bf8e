//! The files of NeMo Agent Toolkit, compared with the output of its own profiler (1.9.0) for the same calls
//! (`fixtures/nat-nested.golden`).

use crate::events::{events, trace};
use crate::reports::{fixture, report};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use trace_merge::{Options, Progress};
use trace_report::{ConfidenceOf, export_nat};

type Files = BTreeMap<&'static str, String>;

fn exported(input: &str) -> Files {
    exported_from(&fixture(input))
}

fn exported_from(input: &Path) -> Files {
    let options = Options::new([input.to_owned()]);
    let found = export_nat(&options, &Progress::default()).unwrap();
    let files = found.into_iter().map(|file| (file.name, file.text));
    files.collect()
}

fn exported_from_text(text: &str) -> Files {
    exported_from(trace(&events(text)).path())
}

/// Returns the rows of the table, with their cells by column.
fn rows(files: &Files) -> Vec<BTreeMap<String, String>> {
    let table = files["standardized_data_all.csv"].as_bytes();
    let mut table = csv::Reader::from_reader(table);
    table.deserialize().map(Result::unwrap).collect()
}

fn parsed_json(files: &Files, name: &str) -> Value {
    serde_json::from_str(&files[name]).unwrap()
}

fn golden(name: &str) -> String {
    std::fs::read_to_string(fixture("nat-nested.golden").join(name)).unwrap()
}

fn golden_json(name: &str) -> Value {
    serde_json::from_str(&golden(name)).unwrap()
}

/// Rounds all numbers to billionths.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter();
            members
                .map(|(key, value)| (key.clone(), rounded(value)))
                .collect()
        }
        Value::Array(elements) => elements.iter().map(rounded).collect(),
        Value::Number(number) => json!((number.as_f64().unwrap() * 1e9).round()),
        other => other.clone(),
    }
}

#[test]
fn the_table_equals_nats_byte_for_byte() {
    let files = exported("nat-nested.json");
    let table = &files["standardized_data_all.csv"];
    assert_eq!(*table, golden("standardized_data_all.csv"));
}

/// Texts of prompts and outputs are left out, because they are not recorded.
#[test]
fn the_steps_equal_nats() {
    let name = "all_requests_profiler_traces.json";
    let found = parsed_json(&exported("nat-nested.json"), name);
    let mut expected = golden_json(name);
    let mut texts = 0;
    for request in expected.as_array_mut().unwrap() {
        for step in request["intermediate_steps"].as_array_mut().unwrap() {
            for text in ["input", "output"] {
                step["payload"]["data"][text] = Value::Null;
                texts += 1;
            }
        }
    }
    assert_eq!(texts, 44);
    assert_eq!(rounded(&found), rounded(&expected));
}

/// NAT computes no percentiles of a throughput.
#[test]
fn intervals_and_percentiles_equal_nats() {
    let name = "inference_optimization.json";
    let found = parsed_json(&exported("nat-nested.json"), name);
    let mut expected = golden_json(name);
    let figures = expected["confidence_intervals"].as_object_mut().unwrap();
    for (figure, theirs) in figures {
        if figure.starts_with("throughput") {
            for percentile in ["p90", "p95", "p99"] {
                theirs[percentile] = Value::Null;
            }
        }
    }
    for member in ["confidence_intervals", "workflow_runtimes"] {
        assert_eq!(rounded(&found[member]), rounded(&expected[member]));
    }
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&found), keys(&expected));
}

/// Each call has its own end. NAT would compute a mean latency of 2.25 s, because it uses the last start of any call.
#[test]
fn overlapping_calls_have_their_own_latencies() {
    let files = exported("nat-overlap.json");
    let optimization = parsed_json(&files, "inference_optimization.json");
    let latency = &optimization["confidence_intervals"]["llm_latency_confidence_intervals"];
    assert_eq!(rounded(&latency["mean"]), json!(2.8e9));
    assert_eq!(latency["n"], 5);
}

/// A request without agent calls is exported as a function, with the engine's work as a model call.
#[test]
fn served_requests_have_the_figures_of_the_report() {
    let (files, report) = (exported("serving.json"), report(fixture("serving.json")));
    let rows = rows(&files);
    assert_eq!(rows.len(), 16);
    for request in &report.request {
        let id = &request.request_id;
        let engine = format!("{id}/engine");
        let mut ends = rows.iter().filter(|row| row["event_type"] == "LLM_END");
        let end = ends.find(|row| row["UUID"] == engine).unwrap();
        let [output, prompt] = [request.output_tokens, request.prompt_tokens]
            .map(|tokens| tokens.unwrap().to_string());
        let columns = [
            "completion_tokens",
            "prompt_tokens",
            "llm_name",
            "function_id",
        ];
        let found = columns.map(|column| &*end[column]);
        assert_eq!(found, [&output, &prompt, "engine", id]);
        let at_s: f64 = end["event_timestamp"].parse().unwrap();
        let off_ns = at_s * 1e9 - request.last_token_ns.unwrap() as f64;
        assert!(off_ns.abs() < 1e3, "{end:?}");
    }
    let optimization = parsed_json(&files, "inference_optimization.json");
    let found = &optimization["confidence_intervals"];
    for (key, quantity, unit) in [
        ("workflow_run_time", ConfidenceOf::E2e, 1e9),
        ("throughput_estimate", ConfidenceOf::RequestsPerS, 1.0),
    ] {
        let mut confidences = report.confidence.iter();
        let ours = confidences
            .find(|confidence| confidence.of == quantity)
            .unwrap();
        let mut found = found.as_object().unwrap().iter();
        let (_, found) = found.find(|(name, _)| name.starts_with(key)).unwrap();
        assert_eq!(found["n"], json!(ours.n), "{key}");
        assert_eq!(rounded(&found["mean"]), rounded(&json!(ours.mean / unit)));
    }
    let p99 = &optimization["workflow_runtimes"]["p99"];
    assert_eq!(rounded(p99), json!(report.requests.e2e.p99_ns.round()));
}

#[test]
fn a_trace_without_requests_has_empty_files() {
    let files = exported("hta-rank-0.json");
    assert_eq!(files["standardized_data_all.csv"].lines().count(), 1);
    let traces = parsed_json(&files, "all_requests_profiler_traces.json");
    assert_eq!(traces, json!([]));
    let found = parsed_json(&files, "inference_optimization.json");
    let throughput = &found["confidence_intervals"]["throughput_estimate_confidence_interval"];
    assert!(throughput.is_null() && found["workflow_runtimes"].is_null());
}

/// The number of output tokens of a model call is known only when it ends.
#[test]
fn an_end_adds_the_number_of_output_tokens() {
    let files = exported_from_text(
        "b 1 0 chat cat=llm id=7 request_id=a prompt_tokens=5
        e 1 100 chat cat=llm id=7 completion_tokens=9",
    );
    let rows = rows(&files);
    let end = rows.iter().find(|row| row["event_type"] == "LLM_END");
    let tokens = ["prompt_tokens", "completion_tokens"].map(|column| &*end.unwrap()[column]);
    assert_eq!(tokens, ["5", "9"]);
}

/// An id that several calls use gets the request's id as a prefix, and a call is never its own ancestor.
#[test]
fn hostile_ids_do_not_join_calls() {
    let files = exported_from_text(
        "X 1 0+10 a cat=function request_id=r span_id=a parent_id=c
        X 1 100+10 b cat=function request_id=r span_id=b parent_id=a
        X 1 200+10 b cat=function request_id=r span_id=b parent_id=a
        X 1 300+10 c cat=function request_id=r span_id=c parent_id=c
        X 1 900+10 a cat=function request_id=s span_id=a parent_id=nobody",
    );
    let traces = parsed_json(&files, "all_requests_profiler_traces.json");
    let requests = traces.as_array().unwrap().iter();
    let steps = requests.flat_map(|request| request["intermediate_steps"].as_array().unwrap());
    let begins = steps.filter(|step| step["payload"]["event_type"] == "FUNCTION_START");
    let found = begins.map(|step| json!([step["payload"]["UUID"], step["parent_id"]]));
    let expected = json!([
        ["r/a", "root"],
        ["b", "r/a"],
        ["r/2", "r/a"],
        ["c", "root"],
        ["s/a", "root"],
    ]);
    assert_eq!(json!(found.collect::<Vec<_>>()), expected);
}
