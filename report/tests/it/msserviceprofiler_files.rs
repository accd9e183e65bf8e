//! The tables of msServiceProfiler: the columns that its documentation lists, and the figures of the report.

use crate::golden::{fixture, report};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use trace_merge::{Options, Progress};
use trace_report::{FilesFormat, export_files};

type Row = BTreeMap<String, String>;

/// The columns of each table, in their order, and its rows.
struct Tables(BTreeMap<&'static str, (Vec<String>, Vec<Row>)>);

impl Tables {
    fn of(input: &Path) -> Tables {
        let options = Options::new([input.to_owned()]);
        let found = export_files(
            &options,
            FilesFormat::Msserviceprofiler,
            &Progress::default(),
        );
        let found = found.unwrap().into_iter().map(|file| {
            let mut table = csv::Reader::from_reader(file.text.as_bytes());
            let columns = table.headers().unwrap().iter().map(str::to_owned).collect();
            let rows = table.deserialize().map(Result::unwrap).collect();
            (file.name, (columns, rows))
        });
        Tables(found.collect())
    }

    fn of_lines(lines: &[Value]) -> Tables {
        let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
        let text = json!({ "traceEvents": lines }).to_string();
        std::fs::write(file.path(), text).unwrap();
        Tables::of(file.path())
    }

    fn rows(&self, name: &str) -> &[Row] {
        &self.0[name].1
    }

    /// The cells of some columns, a line for each row.
    fn cells(&self, name: &str, columns: &[&str]) -> Vec<String> {
        let cells = |row: &Row| {
            columns
                .iter()
                .map(|column| row[*column].clone())
                .collect::<Vec<_>>()
        };
        self.rows(name)
            .iter()
            .map(|row| cells(row).join(" "))
            .collect()
    }
}

/// As the tables of its documentation list them.
#[test]
fn columns_are_those_of_the_documentation() {
    let tables = Tables::of(&fixture("serving.json"));
    let expected = [
        (
            "request.csv",
            "http_rid start_datetime recv_token_size reply_token_size execution_time(ms) queue_wait_time(ms) first_token_latency(ms) cache_hit_rate start_time(ms)",
        ),
        (
            "batch.csv",
            "name res_list start_datetime end_datetime during_time(ms) batch_type prof_id batch_size prefill_batch_size decode_batch_size total_blocks used_blocks free_blocks blocks_allocated blocks_freed kvcache_usage_rate prefill_scheduled_tokens decode_scheduled_tokens total_scheduled_tokens dp_rank start_time(ms) end_time(ms) accepted_ratio accepted_ratio_per_pos",
        ),
        (
            "kvcache.csv",
            "rid name start_time total_blocks used_blocks free_blocks blocks_allocated blocks_freed device_kvcache_left kvcache_usage_rate",
        ),
        (
            "forward.csv",
            "name relative_start_time(ms) start_datetime end_datetime during_time(ms) bubble_time(ms) batch_size batch_type forward_iter dp_rank prof_id hostname start_time(ms) end_time(ms)",
        ),
    ];
    assert_eq!(tables.0.len(), expected.len());
    for (name, columns) in expected {
        assert_eq!(tables.0[name].0.join(" "), columns, "{name}");
    }
}

#[test]
fn requests_are_those_of_the_report() {
    let (tables, report) = (
        Tables::of(&fixture("serving.json")),
        report(fixture("serving.json")),
    );
    let text = std::fs::read(fixture("serving.expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&text).unwrap();
    let rows = tables.rows("request.csv");
    assert_eq!(rows.len(), report.request.len());
    for (row, request) in rows.iter().zip(&report.request) {
        assert_eq!(row["http_rid"], request.request_id());
        let number = |column: &str| -> f64 { row[column].parse().unwrap() };
        let of = &expected["per_request"][request.request_id()];
        let figures = [
            ("execution_time(ms)", "e2el_ms"),
            ("first_token_latency(ms)", "ttft_ms"),
            ("queue_wait_time(ms)", "queue_ms"),
            ("cache_hit_rate", "kv_efficiency"),
        ];
        for (column, figure) in figures {
            let expected = of[figure].as_f64().unwrap();
            let found = number(column);
            assert!(
                (found - expected).abs() < 1e-6,
                "{column} {found} {expected}"
            );
        }
        assert_eq!(
            Some(row["recv_token_size"].parse().unwrap()),
            request.prompt_tokens()
        );
        assert_eq!(
            Some(row["reply_token_size"].parse().unwrap()),
            request.output_tokens()
        );
        let arrival_ms = request.arrival_ns().unwrap() as f64 / 1e6;
        assert!((number("start_time(ms)") - arrival_ms).abs() < 1e-6);
        // Nothing tells of the wall clock.
        assert_eq!(row["start_datetime"], "");
    }
}

/// An engine with two steps, and a worker that runs them.
fn two_steps() -> Vec<Value> {
    let span = |pid: u64, name: &str, ts: u64, dur: u64, args: Value| json!({"ph": "X", "pid": pid, "tid": pid, "ts": ts, "dur": dur, "name": name, "args": args});
    let blocks = |ts: u64, used: u64| json!({"ph": "C", "pid": 1, "tid": 1, "ts": ts, "name": "kv_blocks", "args": {"used": used, "free": 100 - used}});
    let first = json!({"request_ids": ["a", "b\"'"], "prefill_requests": 2, "decode_requests": 0, "prefill_tokens": 40, "decode_tokens": 0});
    let second = json!({"request_ids": ["a", "b\"'"], "prefill_requests": 1, "decode_requests": 1, "prefill_tokens": 9, "decode_tokens": 1});
    vec![
        blocks(0, 0),
        span(
            1,
            "scheduler.schedule",
            100,
            50,
            json!({"prefill": 0, "decode": 0}),
        ),
        span(1, "scheduler.schedule", 200, 50, json!({"tokens": 0})),
        span(1, "scheduler.schedule", 1_000, 500, first.clone()),
        blocks(1_400, 25),
        span(2, "WorkerWrapperBase.execute_model", 2_000, 10_000, first),
        span(2, "model_runner.execute_model", 2_100, 9_000, json!({})),
        span(1, "scheduler.schedule", 12_000, 500, second.clone()),
        blocks(12_500, 20),
        span(2, "WorkerWrapperBase.execute_model", 15_000, 2_000, second),
    ]
}

#[test]
fn batches_have_their_requests_tokens_and_blocks() {
    let tables = Tables::of_lines(&two_steps());
    let columns = [
        "name",
        "prof_id",
        "during_time(ms)",
        "batch_type",
        "batch_size",
        "total_scheduled_tokens",
    ];
    let expected = [
        "batchFrameworkProcessing 1 0.5 Prefill 2 40",
        "modelExec 2 10 Prefill 2 40",
        "batchFrameworkProcessing 1 0.5 Prefill,Decode 2 10",
        "modelExec 2 2 Prefill,Decode 2 10",
    ];
    assert_eq!(tables.cells("batch.csv", &columns), expected);
    let columns = [
        "total_blocks",
        "used_blocks",
        "free_blocks",
        "blocks_allocated",
        "blocks_freed",
        "kvcache_usage_rate",
    ];
    let expected = [
        "100 25 75 25 -25 0.25",
        "     ",
        "100 20 80 -5 5 0.2",
        "     ",
    ];
    assert_eq!(tables.cells("batch.csv", &columns), expected);
    let listed: Value = serde_json::from_str(&tables.rows("batch.csv")[0]["res_list"]).unwrap();
    assert_eq!(listed, json!([{"rid": "a"}, {"rid": "b\"'"}]));
    let columns = [
        "start_time",
        "used_blocks",
        "blocks_allocated",
        "kvcache_usage_rate",
    ];
    let expected = ["0 0  0", "1.4 25 25 0.25", "12.5 20 -5 0.2"];
    assert_eq!(tables.cells("kvcache.csv", &columns), expected);
}

#[test]
fn the_model_runs_where_a_recorder_says_so_and_else_in_steps() {
    let columns = [
        "relative_start_time(ms)",
        "during_time(ms)",
        "bubble_time(ms)",
        "batch_size",
        "batch_type",
        "forward_iter",
        "start_time(ms)",
    ];
    let tables = Tables::of_lines(&two_steps());
    let expected = ["0 10 3 2 Prefill 1 2", "13 2  2 Prefill,Decode 2 15"];
    assert_eq!(tables.cells("forward.csv", &columns), expected);
    let mut lines = two_steps();
    lines.push(json!({"ph": "X", "pid": 2, "tid": 2, "ts": 3_000, "dur": 4_000, "name": "gpu_model_runner: forward"}));
    let tables = Tables::of_lines(&lines);
    assert_eq!(
        tables.cells("forward.csv", &columns),
        ["0 4  2 Prefill 1 3"]
    );
    assert_eq!(tables.rows("batch.csv").len(), 4);
}

/// What a recorder writes (FORMAT.md §2): its host, and what its clock is on the wall.
const FRAGMENT: &str = r#"{"ph":"M","pid":4711,"tid":4711,"name":"sa_fragment","args":{"version":1,"nonce":"9f86d081884c7d65","segment":0,"run":"20261121-081502-5feceb66","main":true,"host":"node-3","boot_id":"0b1f7a3e-6c1d-4c55-9a37-1f7f4f9d2c11","pid_ns":4026531836,"time_ns":4026531834,"monotonic_offset_ns":0,"pid":4711,"start_time":812345,"exe":"python3.11","script":"serve.py","ring":"file","page_bytes":4096,"levels":["e2e","kernel"]}}
{"ph":"M","pid":4711,"tid":4711,"name":"sa_anchor","args":{"monotonic_ns":81234567891,"realtime_ns":1795248902123456789,"uncertainty_ns":41}}
{"ph":"X","pid":4711,"tid":4711,"ts":81234568.891,"dur":1500.000,"name":"WorkerWrapperBase.execute_model"}
{"ph":"M","pid":4711,"tid":4711,"name":"sa_end","args":{"monotonic_ns":91234567891}}
"#;

#[test]
fn a_recorded_run_has_dates_and_hosts() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("trace.4711.jsonl");
    std::fs::write(&path, FRAGMENT).unwrap();
    let tables = Tables::of(&path);
    let columns = ["start_datetime", "end_datetime", "prof_id", "hostname"];
    let expected = "2026-11-21 08:15:02.123457 2026-11-21 08:15:02.124957 4711 node-3";
    assert_eq!(tables.cells("forward.csv", &columns), [expected]);
    let ms: f64 = tables.rows("forward.csv")[0]["start_time(ms)"]
        .parse()
        .unwrap();
    assert!((ms - 1_795_248_902_123.457).abs() < 1e-2, "{ms}");
}

/// A worker that looks into its steps does not hide one that does not. Threads of a process may run at once.
#[test]
fn each_process_has_forwards_or_steps() {
    let mut lines = two_steps();
    let span = |pid: u64, tid: u64, name: &str, ts: u64, dur: u64| json!({"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name});
    lines.push(span(3, 3, "gpu_model_runner: forward", 3_000, 4_000));
    lines.push(span(3, 4, "gpu_model_runner: forward", 4_000, 1_000));
    let tables = Tables::of_lines(&lines);
    let columns = ["prof_id", "start_time(ms)", "bubble_time(ms)"];
    let expected = ["2 2 3", "3 3 0", "3 4 ", "2 15 "];
    assert_eq!(tables.cells("forward.csv", &columns), expected);
}

/// A recorder writes the ends of some spans as events of their own, with what it knows only then.
#[test]
fn an_end_says_what_was_in_a_batch() {
    let tables = Tables::of_lines(&[
        json!({"ph": "B", "pid": 1, "tid": 1, "ts": 0, "name": "scheduler.schedule"}),
        json!({"ph": "E", "pid": 1, "tid": 1, "ts": 10, "name": "scheduler.schedule", "args": {"prefill_requests": 3, "decode_requests": 0}}),
        json!({"ph": "B", "pid": 1, "tid": 1, "ts": 20, "name": "scheduler.schedule"}),
        json!({"ph": "E", "pid": 1, "tid": 1, "ts": 30, "args": {"tokens": 0}}),
    ]);
    let cells = tables.cells("batch.csv", &["start_time(ms)", "batch_size"]);
    assert_eq!(cells, ["0 3"]);
}
