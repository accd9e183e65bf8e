//! The statements of `report/sql`, in Perfetto's trace processor: they give what the report says.

use crate::golden::report;
use crate::idle::four_ranks;
use crate::page::served;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use trace_report::RunReport;

const TPQ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/perfetto/tpq");
const SQL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sql");
/// What it exits with where it cannot be set up.
const NOT_HERE: i32 = 3;

/// The rows of each statement; nothing (said loudly) where there is no trace processor.
#[expect(clippy::print_stderr, reason = "it says where it does not run")]
fn rows(test: &str, trace: &Path) -> Option<BTreeMap<String, Vec<Value>>> {
    let mut names: Vec<String> = std::fs::read_dir(SQL)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| Some(name.strip_suffix(".sql")?.to_owned()))
        .collect();
    names.sort();
    let mut command = Command::new(TPQ);
    command.arg("--objects").arg(trace);
    for name in &names {
        command.arg(std::fs::read_to_string(format!("{SQL}/{name}.sql")).unwrap());
    }
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NOT_HERE) {
        eprint!("SKIPPED {test}: {words}");
        return None;
    }
    assert!(output.status.success(), "{words}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let rows = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    Some(names.into_iter().zip(rows).collect())
}

/// Numbers that differ by no more than the rounding of a double.
fn near(found: &Value, expected: f64) -> bool {
    let found = found.as_f64().unwrap_or(f64::NAN);
    (found - expected).abs() <= 1e-9 * expected.abs().max(1.0)
}

fn requests_agree(rows: &[Value], report: &RunReport) {
    let found: BTreeMap<&str, &Value> = rows
        .iter()
        .map(|row| (row["request_id"].as_str().unwrap(), row))
        .collect();
    assert_eq!(found.len(), report.request.len());
    for request in &report.request {
        let row = found[request.request_id.as_str()];
        let figures = [
            ("queued_ns", request.queued_ns),
            ("scheduled_ns", request.scheduled_ns),
            ("ttft_ns", request.ttft_ns()),
            ("e2e_ns", request.e2e_ns()),
        ];
        for (key, ns) in figures {
            assert_eq!(row[key], json!(ns), "{} {key}", request.request_id);
        }
    }
}

/// Names with time of their own: calls and sums of threads and devices, exactly.
fn names_agree(rows: &[Value], report: &RunReport) {
    for name in report.names.iter().filter(|name| name.ttot_ns > 0) {
        let kind = json!(name.row_kind);
        let is_it = |row: &&Value| {
            row["name"] == json!(name.name)
                && row["row_kind"] == kind
                && row["category"].as_str().unwrap_or("") == name.category
        };
        let row = rows
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{name:?}: {rows:?}"));
        assert_eq!(
            [&row["ncall"], &row["ttot_ns"], &row["tsub_ns"]],
            [
                &json!(name.ncall),
                &json!(name.ttot_ns),
                &json!(name.tsub_ns)
            ],
            "{name:?}"
        );
    }
}

fn devices_agree(rows: &[Value], report: &RunReport) {
    assert_eq!(rows.len(), report.device.len());
    for (row, device) in rows.iter().zip(&report.device) {
        let found = ["slices", "busy_ns", "wall_ns", "longest_gap_ns"].map(|key| &row[key]);
        let expected = [
            json!(device.slices),
            json!(device.busy_ns),
            json!(device.wall_ns),
            json!(device.longest_gap_ns),
        ];
        assert_eq!(found, expected.each_ref(), "{row}");
    }
}

#[test]
fn statements_say_what_the_report_says() {
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    let lines = served().finished();
    std::fs::write(file.path(), json!({ "traceEvents": lines }).to_string()).unwrap();
    let Some(rows) = rows("statements_say_what_the_report_says", file.path()) else {
        return;
    };
    let report = report(file.path().to_owned());
    requests_agree(&rows["requests"], &report);
    names_agree(&rows["names"], &report);
    devices_agree(&rows["devices"], &report);
    let itl = &rows["between_tokens"][0];
    assert_eq!(itl["n"], json!(report.requests.itl.n));
    assert!(near(&itl["mean_ns"], report.requests.itl.mean_ns), "{itl}");
    let parts = rows["request_parts"]
        .iter()
        .map(|row| row["name"].as_str().unwrap());
    let expected = report.request_parts.parts.iter();
    assert!(
        parts.eq(expected.clone().map(|part| part.name.as_str())),
        "{:?}",
        rows["request_parts"]
    );
    for (row, part) in rows["request_parts"].iter().zip(expected) {
        assert!(near(&row["mean_ns"], part.mean_ns), "{row} {part:?}");
    }
    let steps = rows["steps"].iter().map(|row| row["dur"].as_i64().unwrap());
    let expected = report.slow_steps.iter().map(|step| step.dur_ns);
    assert!(steps.eq(expected), "{:?}", rows["steps"]);
    let longest = report.long_gaps[0].dur_ns;
    assert!(rows["gaps"].iter().any(|row| row["dur"] == json!(longest)));
    let wall = rows["recorded"]
        .iter()
        .all(|row| row["wall_ns"] == json!(report.recorded.wall_ns));
    assert!(wall, "{:?}", rows["recorded"]);
    for level in report.load.iter().filter(|level| level.process.is_some()) {
        let is_it = |row: &&Value| near(&row["mean"], level.mean) && near(&row["max"], level.max);
        assert!(
            rows["load"].iter().any(|row| is_it(&row)),
            "{level:?}: {:?}",
            rows["load"]
        );
    }
}

/// How often each rank came last, and by how much.
#[test]
fn collectives_are_those_of_the_report() {
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    let trace = json!({ "traceEvents": four_ranks() });
    std::fs::write(file.path(), trace.to_string()).unwrap();
    let Some(rows) = rows("collectives_are_those_of_the_report", file.path()) else {
        return;
    };
    let report = report(file.path().to_owned());
    let found: BTreeMap<String, (u64, i64)> = rows["collectives"]
        .iter()
        .map(|row| {
            let name = row["last_device"].as_str().unwrap().to_owned();
            let of = (&row["device_last"], &row["device_late_ns"]);
            (name, (of.0.as_u64().unwrap(), of.1.as_i64().unwrap()))
        })
        .collect();
    let last = report.rank.iter().filter(|rank| rank.last > 0);
    let expected = last.map(|rank| {
        let name = report.recorded.process_name(rank.process);
        (name, (rank.last, rank.late_ns))
    });
    assert_eq!(found, expected.collect());
}
