//! The statements of `examples/msserviceprofiler`: the columns that msServiceProfiler's documentation lists, and the figures of the report.

use crate::events::events;
use crate::reports::fixture;
use crate::sql::{Run, answers};
use format_oracle::writer::Process;
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

    fn of_text(text: &str) -> Option<Files> {
        Files::of(&Run::of_lines(&events(text)))
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
    let documented = include_str!("../fixtures/msserviceprofiler-columns.txt");
    let mut found = String::new();
    for (name, text) in STATEMENTS {
        // A column is the last word of each line after the last SELECT.
        let select = text.rsplit_once("\nSELECT\n").unwrap().1;
        let select = select.split_once("\nFROM ").unwrap().0;
        let named = |line: &str| {
            let word = line.rsplit_once(' ').unwrap().1;
            word.trim_matches([',', '"']).to_owned()
        };
        let columns: Vec<String> = select.lines().map(named).collect();
        found += &format!("{name} {}\n", columns.join(" "));
    }
    assert_eq!(found, documented);
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
        assert_eq!(row["http_rid"], *request.request_id);
        let of = &expected["per_request"][&*request.request_id];
        let arrival_ms = json!(request.arrival_ns.unwrap() as f64 / 1e6);
        for (column, expected) in [
            ("execution_time(ms)", &of["e2el_ms"]),
            ("first_token_latency(ms)", &of["ttft_ms"]),
            ("queue_wait_time(ms)", &of["queue_ms"]),
            ("cache_hit_rate", &of["kv_efficiency"]),
            ("start_time(ms)", &arrival_ms),
        ] {
            let off = row[column].as_f64().unwrap() - expected.as_f64().unwrap();
            assert!(off.abs() < 1e-6, "{column} {row} {expected}");
        }
        assert_eq!(row["recv_token_size"], json!(request.prompt_tokens));
        assert_eq!(row["reply_token_size"], json!(request.output_tokens));
        // Nothing says what the wall clock was.
        assert_eq!(row["start_datetime"], Value::Null);
    }
}

/// An engine with two steps, and a worker that runs them.
const TWO_STEPS: &str = r#"C 1 0 kv_blocks used=0 free=100
X 1 100+50 scheduler.schedule prefill=0 decode=0
X 1 200+50 scheduler.schedule tokens=0
X 1 1000+500 scheduler.schedule request_ids=["a","b\"\u0027"] prefill_requests=2 decode_requests=0 prefill_tokens=40 decode_tokens=0
C 1 1400 kv_blocks used=25 free=75
X 2/2 2000+10000 WorkerWrapperBase.execute_model request_ids=["a","b\"\u0027"] prefill_requests=2 decode_requests=0 prefill_tokens=40 decode_tokens=0
X 2/2 2100+9000 model_runner.execute_model
X 1 12000+500 scheduler.schedule request_ids=["a","b\"\u0027"] prefill_requests=1 decode_requests=1 prefill_tokens=9 decode_tokens=1
C 1 12500 kv_blocks used=20 free=80
X 2/2 15000+2000 WorkerWrapperBase.execute_model request_ids=["a","b\"\u0027"] prefill_requests=1 decode_requests=1 prefill_tokens=9 decode_tokens=1
"#;

#[test]
fn batches_have_their_requests_tokens_and_blocks() {
    let Some(files) = Files::of_text(TWO_STEPS) else {
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
    let Some(files) = Files::of_text(TWO_STEPS) else {
        return;
    };
    let expected = ["0 10 3 2 Prefill 1 2", "13 2  2 Prefill,Decode 2 15"];
    assert_eq!(files.cells("forward", columns), expected);
    let with = |lines: &str| Files::of_text(&format!("{TWO_STEPS}{lines}")).unwrap();
    let files = with("X 2/2 3000+4000 'gpu_model_runner: forward'");
    assert_eq!(files.cells("forward", columns), ["0 4  2 Prefill 1 3"]);
    assert_eq!(files.0["batch"].len(), 4);
    // A worker that looks into its steps does not hide one that does not. Threads of a process may run at once.
    let files = with(
        "X 3/3 3000+4000 'gpu_model_runner: forward'
        X 3/4 4000+1000 'gpu_model_runner: forward'",
    );
    let columns = "prof_id start_time(ms) bubble_time(ms)";
    let expected = ["2 2 3", "3 3 0", "3 4 ", "2 15 "];
    assert_eq!(files.cells("forward", columns), expected);
}

#[test]
fn a_recorded_run_has_dates_and_hosts() {
    let process = Process::new(4711);
    let mut fragment = process.fragment();
    fragment.line(&process.anchor(123_456_789));
    let step = "WorkerWrapperBase.execute_model";
    fragment.line(&process.main_thread().span(123_457_789, 1_500_000, step, ""));
    fragment.line(&process.end(9_000_000_000));
    let Some(files) = Files::of(&Run::of_fragments([fragment])) else {
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
    let files = Files::of_text(
        "B 1 0 scheduler.schedule
        E 1 10 scheduler.schedule prefill_requests=3 decode_requests=0
        B 1 20 scheduler.schedule
        E 1 30 tokens=0",
    );
    if let Some(files) = files {
        let cells = files.cells("batch", "start_time(ms) batch_size");
        assert_eq!(cells, ["0 3"]);
    }
}

/// Threads of a process run steps of their own, and counters that say nothing of a cache, or nothing that can be, are no rows.
#[test]
fn steps_of_two_threads_are_two_and_odd_counters_are_none() {
    let all = u64::MAX / 2;
    let files = Files::of_text(&format!(
        r#"X 2/2 0+100 Worker.execute_model prefill_requests=1
        X 2/3 10+20 Worker.execute_model request_id=a request_ids=["b","c"]
        X 2/2 200+5 Worker.execute_model prefill_requests={all} decode_requests={all} prefill_tokens={all} decode_tokens={all}
        C 1 1 kv_blocks used=5
        C 1 2 kv_blocks used=1e30 free=3
        C 1 3 kv_blocks used=-1 free=3
        C 1 4 kv_blocks used=1 free=3"#
    ));
    let Some(files) = files else {
        return;
    };
    let columns = "start_time(ms) batch_size batch_type res_list";
    let expected = ["0   ", r#"0.01 1  [{"rid":"a"}]"#, "0.2  Prefill,Decode "];
    assert_eq!(files.cells("batch", columns), expected);
    let columns = "start_time used_blocks kvcache_usage_rate";
    assert_eq!(files.cells("kvcache", columns), ["0.004 1 0.25"]);
}
