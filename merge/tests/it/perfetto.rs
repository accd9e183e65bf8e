//! Merged traces in Perfetto's own trace processor: every event, no import error.

use crate::invocation::{Merged, RunDir};
use format_oracle::writer::line::stream;
use format_oracle::writer::{Open, Process, Ring, Slot};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Maximum time in seconds for all traces and queries of a test.
const MAX_SECONDS: &str = "170";

/// Runs the trace processor. Returns `None`, with a loud message, if it cannot be set up.
fn tpq(test: &str, traces: &[impl AsRef<Path>], words: &[&str]) -> Option<Output> {
    let tpq = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/perfetto/tpq");
    // Loading some traces never ends.
    let mut command = Command::new("timeout");
    command.args(["--kill-after", "10", MAX_SECONDS]).arg(&tpq);
    command.args(traces.iter().map(AsRef::as_ref)).args(words);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED {test}: {}: {error}", tpq.display());
            return None;
        }
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    let ended = output.stdout.iter().filter(|byte| **byte == b'\n').count();
    assert!(
        !matches!(output.status.code(), Some(124 | 137) | None),
        "{test}: the trace processor does not end, at {:?}",
        traces.get(ended).map(|trace| trace.as_ref().display())
    );
    if output.status.code() == Some(3) {
        eprintln!("SKIPPED {test}: the trace processor cannot be set up: {stderr}");
        return None;
    }
    Some(output)
}

/// Returns true for each of the traces that the trace processor loads.
pub(crate) fn loads(test: &str, traces: &[PathBuf]) -> Option<Vec<bool>> {
    let output = tpq(test, traces, &["--loads"])?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let loads: Vec<bool> = lines.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(loads.len(), traces.len(), "{lines}");
    Some(loads)
}

/// Returns the rows of each query, or `None` if the trace processor cannot be set up.
pub(crate) fn query(test: &str, trace: &Path, queries: &[&str]) -> Option<Vec<Vec<Value>>> {
    let output = tpq(test, &[trace], queries)?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<Value>> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), queries.len(), "{lines}");
    Some(rows)
}

pub(crate) const ERRORS: &str = "select name, value from stats where value > 0 and severity in ('error', 'data_loss') order by name";
pub(crate) const SLICES: &str = "select count(*) from slice";
pub(crate) const FLOWS: &str = "select count(*) from flow";

pub(crate) fn number(rows: &[Value]) -> u64 {
    rows[0][0].as_u64().unwrap()
}

/// Returns the rows of each query of a trace in memory.
pub(crate) fn query_bytes(test: &str, trace: &[u8], queries: &[&str]) -> Option<Vec<Vec<Value>>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    std::fs::write(&path, trace).unwrap();
    query(test, &path, queries)
}

/// Asserts that the trace processor loads a trace without any error.
pub(crate) fn assert_no_errors(test: &str, trace: &[u8], what: &[&str]) {
    if let Some(rows) = query_bytes(test, trace, &[ERRORS]) {
        assert!(rows[0].is_empty(), "{what:?}: {:?}", rows[0]);
    }
}

/// Returns a run of two processes with flows between them, counters, lanes, an unfinished span, and
/// every kind of damage of a line.
pub(crate) fn hostile_run() -> RunDir {
    let dir = RunDir::new();
    for pid in [10, 20] {
        let process = Process {
            main: pid == 10,
            ..Process::with_ring(pid)
        };
        let (on, lane) = (process.main_thread(), process.thread((1 << 22) + 1));
        let ts = |us: u64| 5_000_000 + u64::from(pid) * 100_000 + us * 1000;
        let mut fragment = process.fragment();
        let lines = [
            on.metadata("process_name", &format!(r#""name":"process {pid}""#)),
            on.span(ts(0), 900_000, "around", ""),
            on.flow("s", ts(1), "local", 1),
            on.flow("t", ts(2), "local", 1),
            on.flow("f", ts(3), "local", 1),
            on.flow(if pid == 10 { "s" } else { "f" }, ts(4), "global", 1),
            on.counter(ts(5), "requests", "\"running\":3,\"waiting\":1"),
            lane.span(ts(0), 400_000, "on a lane", ""),
            on.instant(ts(6), "token", ""),
        ];
        let from = fragment.block(1, 0, &stream(&lines));
        fragment.raw(b"garbage\n\0\0\0\n\xff\n{\"ph\":\"X\"}\n[]\n");
        fragment.write_here(&dir.fragments());
        let slot = Slot {
            stream: stream(&[on.span(ts(1000), 500, "tail", "")]),
            open: vec![Open::named(ts(2000), "killed here")],
            ..Slot::flushed(pid, from)
        };
        Ring::with_thread(&process, slot).write_here(&dir.fragments());
    }
    dir
}

/// Returns a run with a span that began long before the window, another one in it, and one that was
/// open when the process was killed.
fn long_run() -> RunDir {
    let dir = RunDir::new();
    let process = Process::with_ring(70);
    let (on, mut fragment) = (process.main_thread(), process.fragment());
    let seconds = |seconds: u64| seconds * 1_000_000_000;
    let lines = [
        on.span(seconds(40), seconds(1), "short", ""),
        on.span(seconds(3), seconds(39), "inner", ""),
        on.span(seconds(2), seconds(43), "outer", ""),
        on.span(seconds(1), seconds(1), "before", ""),
        on.instant(seconds(46), "last", ""),
    ];
    let from = fragment.block(1, 0, &stream(&lines));
    fragment.write_here(&dir.fragments());
    let slot = Slot {
        open: vec![Open::named(seconds(1), "killed here")],
        ..Slot::flushed(70, from)
    };
    Ring::with_thread(&process, slot).write_here(&dir.fragments());
    dir
}

#[test]
fn issue_47_perfetto_opens_on_the_requested_window() {
    let test = "issue_47_perfetto_opens_on_the_requested_window";
    let dir = long_run();
    for sorted in [None, Some("--sort")] {
        let asked = ["--no-settle", "--last=12s"].into_iter().chain(sorted);
        let merged = Merged::new(&asked.collect::<Vec<_>>(), &[dir.path()]);
        let shown = "select name, depth, (ts - (select start_ts from trace_bounds)) / 1000000, dur / 1000000 from slice order by depth, ts";
        let bounds = "select end_ts - start_ts from trace_bounds";
        let whole =
            "select extract_arg(arg_set_id, 'args.sa_whole_dur') from slice where name = 'outer'";
        let queries = [ERRORS, bounds, shown, whole];
        let Some(rows) = query_bytes(test, &merged.bytes, &queries) else {
            return;
        };
        assert!(rows[0].is_empty(), "{:?}", rows[0]);
        // The begin of the open span is 1 ns before the window.
        assert_eq!(number(&rows[1]), 12_000_000_001);
        let expected = serde_json::json!([
            ["killed here", 0, 0, 0],
            ["outer", 1, 0, 11_000],
            ["last", 1, 12_000, 0],
            ["inner", 2, 0, 8_000],
            ["short", 3, 6_000, 1_000],
        ]);
        assert_eq!(serde_json::json!(rows[2]), expected);
        assert_eq!(rows[3][0][0].as_f64(), Some(43e6));
    }
}
