//! The statements of `examples/msserviceprofiler`: the columns that msServiceProfiler's documentation lists, and the figures of the report.

use crate::golden::fixture;
use crate::sql::{Run, answers};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Returns a statement with the views that it needs.
macro_rules! statement {
    ($name:literal) => {
        concat!(
            include_str!("../../../examples/msserviceprofiler/views.sql"),
            include_str!(concat!(
                "../../../examples/msserviceprofiler/",
                $name,
                ".sql"
            ))
        )
    };
}

const STATEMENTS: [(&str, &str); 4] = [
    ("request", statement!("request")),
    ("batch", statement!("batch")),
    ("kvcache", statement!("kvcache")),
    ("forward", statement!("forward")),
];

/// The rows of each statement.
struct Files(BTreeMap<&'static str, Vec<Value>>);

impl Files {
    /// Runs the statements in DuckDB; `None` (with a message) where it cannot be installed.
    fn of(run: &Run) -> Option<Files> {
        let texts = STATEMENTS.map(|(_, text)| text);
        let rows = answers(&run.tables(), "duckdb", &texts)?;
        let names = STATEMENTS.map(|(name, _)| name);
        Some(Files(names.into_iter().zip(rows).collect()))
    }

    /// Returns the cells of some columns, a line for each row.
    fn cells(&self, name: &str, columns: &str) -> Vec<String> {
        let cell = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            number => number.as_f64().unwrap().to_string(),
        };
        let line = |row: &Value| {
            let cells = columns.split(' ').map(|column| cell(&row[column]));
            cells.collect::<Vec<_>>().join(" ")
        };
        self.0[name].iter().map(line).collect()
    }
}

#[test]
fn columns_are_those_of_the_documentation() {
    let expected = [
        (
            "request",
            "http_rid start_datetime recv_token_size reply_token_size execution_time(ms) queue_wait_time(ms) first_token_latency(ms) cache_hit_rate start_time(ms)",
        ),
        (
            "batch",
            "name res_list start_datetime end_datetime during_time(ms) batch_type prof_id batch_size prefill_batch_size decode_batch_size total_blocks used_blocks free_blocks blocks_allocated blocks_freed kvcache_usage_rate prefill_scheduled_tokens decode_scheduled_tokens total_scheduled_tokens dp_rank start_time(ms) end_time(ms) accepted_ratio accepted_ratio_per_pos",
        ),
        (
            "kvcache",
            "rid name start_time total_blocks used_blocks free_blocks blocks_allocated blocks_freed device_kvcache_left kvcache_usage_rate",
        ),
        (
            "forward",
            "name relative_start_time(ms) start_datetime end_datetime during_time(ms) bubble_time(ms) batch_size batch_type forward_iter dp_rank prof_id hostname start_time(ms) end_time(ms)",
        ),
    ];
    for ((name, text), (expected_name, columns)) in STATEMENTS.into_iter().zip(expected) {
        // A column is the last word of each line after the last SELECT.
        let select = text.rsplit_once("\nSELECT\n").unwrap().1;
        let select = select.split_once("\nFROM ").unwrap().0;
        let named = |line: &str| {
            let word = line.rsplit_once(' ').unwrap().1;
            word.trim_matches([',', '"']).to_owned()
        };
        let found: Vec<String> = select.lines().map(named).collect();
        assert_eq!((name, found.join(" ").as_str()), (expected_name, columns));
    }
}

#[test]
fn requests_are_those_of_the_report() {
    let run = Run::of_fixture("serving.json");
    let Some(files) = Files::of(&run) else {
        return;
    };
    let text = std::fs::read(fixture("serving.expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&text).unwrap();
    let (rows, report) = (&files.0["request"], run.report());
    assert_eq!(rows.len(), report.request.len());
    for (row, request) in rows.iter().zip(&report.request) {
        assert_eq!(row["http_rid"], request.request_id());
        let of = &expected["per_request"][request.request_id()];
        let arrival_ms = request.arrival_ns().unwrap() as f64 / 1e6;
        for (column, expected) in [
            ("execution_time(ms)", of["e2el_ms"].as_f64().unwrap()),
            ("first_token_latency(ms)", of["ttft_ms"].as_f64().unwrap()),
            ("queue_wait_time(ms)", of["queue_ms"].as_f64().unwrap()),
            ("cache_hit_rate", of["kv_efficiency"].as_f64().unwrap()),
            ("start_time(ms)", arrival_ms),
        ] {
            let found = row[column].as_f64().unwrap();
            assert!(
                (found - expected).abs() < 1e-6,
                "{column} {found} {expected}"
            );
        }
        assert_eq!(row["recv_token_size"], json!(request.prompt_tokens()));
        assert_eq!(row["reply_token_size"], json!(request.output_tokens()));
        // Nothing says what the wall clock was.
        assert_eq!(row["start_datetime"], Value::Null);
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
    let run = Run::of_lines(&two_steps());
    let Some(files) = Files::of(&run) else {
        return;
    };
    let columns = "name prof_id during_time(ms) batch_type batch_size total_scheduled_tokens";
    let expected = [
        "batchFrameworkProcessing 1 0.5 Prefill 2 40",
        "modelExec 2 10 Prefill 2 40",
        "batchFrameworkProcessing 1 0.5 Prefill,Decode 2 10",
        "modelExec 2 2 Prefill,Decode 2 10",
    ];
    assert_eq!(files.cells("batch", columns), expected);
    let columns =
        "total_blocks used_blocks free_blocks blocks_allocated blocks_freed kvcache_usage_rate";
    let expected = [
        "100 25 75 25 -25 0.25",
        "     ",
        "100 20 80 -5 5 0.2",
        "     ",
    ];
    assert_eq!(files.cells("batch", columns), expected);
    let listed = files.0["batch"][0]["res_list"].as_str().unwrap();
    let listed: Value = serde_json::from_str(listed).unwrap();
    assert_eq!(listed, json!([{"rid": "a"}, {"rid": "b\"'"}]));
    let columns = "start_time used_blocks blocks_allocated kvcache_usage_rate";
    let expected = ["0.0 0  0", "1.4 25 25 0.25", "12.5 20 -5 0.2"];
    assert_eq!(files.cells("kvcache", columns), expected);
}

#[test]
fn the_model_runs_where_a_recorder_says_so_and_else_in_steps() {
    let columns = "relative_start_time(ms) during_time(ms) bubble_time(ms) batch_size batch_type forward_iter start_time(ms)";
    let Some(files) = Files::of(&Run::of_lines(&two_steps())) else {
        return;
    };
    let expected = ["0 10 3 2 Prefill 1 2", "13 2  2 Prefill,Decode 2 15"];
    assert_eq!(files.cells("forward", columns), expected);
    let forward = |pid: u64, tid: u64, ts: u64, dur: u64| json!({"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": "gpu_model_runner: forward"});
    let mut lines = two_steps();
    lines.push(forward(2, 2, 3_000, 4_000));
    let files = Files::of(&Run::of_lines(&lines)).unwrap();
    assert_eq!(files.cells("forward", columns), ["0 4  2 Prefill 1 3"]);
    assert_eq!(files.0["batch"].len(), 4);
    // A worker that looks into its steps does not hide one that does not. Threads of a process may run at once.
    let mut lines = two_steps();
    lines.extend([forward(3, 3, 3_000, 4_000), forward(3, 4, 4_000, 1_000)]);
    let files = Files::of(&Run::of_lines(&lines)).unwrap();
    let columns = "prof_id start_time(ms) bubble_time(ms)";
    let expected = ["2 2 3", "3 3 0", "3 4 ", "2 15 "];
    assert_eq!(files.cells("forward", columns), expected);
}

/// What a recorder writes (FORMAT.md §2): its host, and what its clock is on the wall.
const FRAGMENT: &str = r#"{"ph":"M","pid":4711,"tid":4711,"name":"sa_fragment","args":{"version":1,"nonce":"9f86d081884c7d65","segment":0,"run":"20261121-081502-5feceb66","main":true,"host":"node-3","boot_id":"0b1f7a3e-6c1d-4c55-9a37-1f7f4f9d2c11","pid_ns":4026531836,"time_ns":4026531834,"monotonic_offset_ns":0,"pid":4711,"start_time":812345,"exe":"python3.11","script":"serve.py","ring":"file","page_bytes":4096,"levels":["e2e","kernel"]}}
{"ph":"M","pid":4711,"tid":4711,"name":"sa_anchor","args":{"monotonic_ns":81234567891,"realtime_ns":1795248902123456789,"uncertainty_ns":41}}
{"ph":"X","pid":4711,"tid":4711,"ts":81234568.891,"dur":1500.000,"name":"WorkerWrapperBase.execute_model"}
{"ph":"M","pid":4711,"tid":4711,"name":"sa_end","args":{"monotonic_ns":91234567891}}
"#;

#[test]
fn a_recorded_run_has_dates_and_hosts() {
    let run = Run::of_fragments([(4711, FRAGMENT.as_bytes().to_vec())]);
    let Some(files) = Files::of(&run) else {
        return;
    };
    let columns = "start_datetime end_datetime prof_id hostname";
    let expected = "2026-11-21 08:15:02.123457 2026-11-21 08:15:02.124957 4711 node-3";
    assert_eq!(files.cells("forward", columns), [expected]);
    let ms = files.0["forward"][0]["start_time(ms)"].as_f64().unwrap();
    assert!((ms - 1_795_248_902_123.457).abs() < 1e-2, "{ms}");
}

/// A recorder writes the ends of some spans as events of their own, with what it knows only then.
#[test]
fn an_end_says_what_was_in_a_batch() {
    let run = Run::of_lines(&[
        json!({"ph": "B", "pid": 1, "tid": 1, "ts": 0, "name": "scheduler.schedule"}),
        json!({"ph": "E", "pid": 1, "tid": 1, "ts": 10, "name": "scheduler.schedule", "args": {"prefill_requests": 3, "decode_requests": 0}}),
        json!({"ph": "B", "pid": 1, "tid": 1, "ts": 20, "name": "scheduler.schedule"}),
        json!({"ph": "E", "pid": 1, "tid": 1, "ts": 30, "args": {"tokens": 0}}),
    ]);
    if let Some(files) = Files::of(&run) {
        let cells = files.cells("batch", "start_time(ms) batch_size");
        assert_eq!(cells, ["0 3"]);
    }
}

/// Threads of a process run steps of their own, and counters that say nothing of a cache, or nothing that can be, are no rows.
#[test]
fn steps_of_two_threads_are_two_and_odd_counters_are_none() {
    let step = |tid: u64, ts: u64, dur: u64, args: Value| json!({"ph": "X", "pid": 2, "tid": tid, "ts": ts, "dur": dur, "name": "Worker.execute_model", "args": args});
    let counter = |ts: u64, args: Value| json!({"ph": "C", "pid": 1, "tid": 1, "ts": ts, "name": "kv_blocks", "args": args});
    let all = u64::MAX / 2;
    let run = Run::of_lines(&[
        step(2, 0, 100, json!({"prefill_requests": 1})),
        step(
            3,
            10,
            20,
            json!({"request_id": "a", "request_ids": ["b", "c"]}),
        ),
        step(
            2,
            200,
            5,
            json!({"prefill_requests": all, "decode_requests": all, "prefill_tokens": all, "decode_tokens": all}),
        ),
        counter(1, json!({"used": 5})),
        counter(2, json!({"used": 1e30, "free": 3})),
        counter(3, json!({"used": -1, "free": 3})),
        counter(4, json!({"used": 1, "free": 3})),
    ]);
    let Some(files) = Files::of(&run) else {
        return;
    };
    let columns = "start_time(ms) batch_size batch_type res_list";
    let expected = ["0   ", r#"0.01 1  [{"rid":"a"}]"#, "0.2  Prefill,Decode "];
    assert_eq!(files.cells("batch", columns), expected);
    let columns = "start_time used_blocks kvcache_usage_rate";
    assert_eq!(files.cells("kvcache", columns), ["0.004 1 0.25"]);
}
