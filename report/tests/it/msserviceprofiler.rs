//! The statements of `examples/msserviceprofiler`, compared with the columns in msServiceProfiler's documentation and
//! with the figures of the report.

use crate::events::events;
use crate::reports::fixture;
use crate::sql::{Run, answers};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Includes a statement with the views that it needs.
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

/// Returns the rows of each statement in DuckDB, or `None` (with a message) if DuckDB cannot be installed.
fn files(run: &Run) -> Option<BTreeMap<&'static str, Vec<Value>>> {
    let texts = STATEMENTS.map(|(_, text)| text);
    let rows = answers(&run.tables(), "duckdb", &texts)?;
    let names = STATEMENTS.map(|(name, _)| name);
    Some(names.into_iter().zip(rows).collect())
}

/// Returns the cells of some columns, one line per row.
fn cells(rows: &[Value], columns: &str) -> Vec<String> {
    let cell = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        number => number.as_f64().unwrap().to_string(),
    };
    let line = |row: &Value| {
        let cells = columns.split(' ').map(|column| cell(&row[column]));
        cells.collect::<Vec<_>>().join(" ")
    };
    rows.iter().map(line).collect()
}

#[test]
fn columns_match_the_documentation() {
    let documented = include_str!("../fixtures/msserviceprofiler-columns.txt");
    let mut found = String::new();
    for (name, text) in STATEMENTS {
        // Each line after the last SELECT ends with the name of a column.
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
fn requests_match_the_report() {
    let run = Run::from_fixture("serving.json");
    let Some(files) = files(&run) else {
        return;
    };
    let text = std::fs::read(fixture("serving.expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&text).unwrap();
    let (rows, report) = (&files["request"], run.report());
    assert_eq!(rows.len(), report.request.len());
    for (row, request) in rows.iter().zip(&report.request) {
        assert_eq!(row["http_rid"], *request.request_id);
        let figures = &expected["per_request"][&*request.request_id];
        let arrival_ms = json!(request.arrival_ns.unwrap() as f64 / 1e6);
        for (column, expected) in [
            ("execution_time(ms)", &figures["e2el_ms"]),
            ("first_token_latency(ms)", &figures["ttft_ms"]),
            ("queue_wait_time(ms)", &figures["queue_ms"]),
            ("cache_hit_rate", &figures["kv_efficiency"]),
            ("start_time(ms)", &arrival_ms),
        ] {
            let off = row[column].as_f64().unwrap() - expected.as_f64().unwrap();
            assert!(off.abs() < 1e-6, "{column} {row} {expected}");
        }
        assert_eq!(row["recv_token_size"], json!(request.prompt_tokens));
        assert_eq!(row["reply_token_size"], json!(request.output_tokens));
        // A Chrome trace does not contain the wall clock.
        assert_eq!(row["start_datetime"], Value::Null);
    }
}

#[test]
fn files_match_the_expected_traces() {
    for case in include_str!("../msserviceprofiler.txt")
        .split("== ")
        .skip(1)
    {
        let (name, case) = case.split_once('\n').unwrap();
        let mut parts = case.split("\n-- ");
        let run = Run::from_events(&events(parts.next().unwrap()));
        let Some(files) = files(&run) else {
            return;
        };
        for part in parts {
            let (head, expected) = part.split_once('\n').unwrap();
            let (file, columns) = head.split_once(": ").unwrap();
            let found = cells(&files[file], columns);
            assert_eq!(found.join("\n"), expected.trim_end(), "{name}: {head}");
        }
    }
}

#[test]
fn a_recorded_run_has_dates_and_hosts() {
    let step = "X 4711/4711 123457.789+1500 WorkerWrapperBase.execute_model";
    let Some(files) = files(&Run::recorded(&events(step))) else {
        return;
    };
    let columns = "start_datetime end_datetime prof_id hostname";
    let expected = "2026-11-21 08:15:02.123457 2026-11-21 08:15:02.124957 4711 node-3";
    assert_eq!(cells(&files["forward"], columns), [expected]);
    let ms = files["forward"][0]["start_time(ms)"].as_f64().unwrap();
    assert!((ms - 1_795_248_902_123.457).abs() < 1e-2, "{ms}");
}
