//! Compares the tables of a run, row by row, with the tables of Perfetto's trace processor for the merged trace of the same run.

use crate::events::{events, trace};
use crate::tables::{Row, Tables};
use crate::tool::printed;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use trace_merge::{EventOptions, Mode, Options, Output};

const TPQ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/perfetto/tpq");
/// Statements for Perfetto, one for each comparison.
const STATEMENTS: [&str; 6] = [
    "SELECT s.ts, s.dur, s.name, s.category, s.depth, p.name, p.ts, s.thread_dur FROM slice s LEFT JOIN slice p ON p.id = s.parent_id",
    "SELECT s.ts, s.name, t.tid, t.name, p.pid, p.name FROM slice s JOIN thread_track k ON k.id = s.track_id JOIN thread t ON t.utid = k.utid JOIN process p ON p.upid = t.upid",
    "SELECT s.ts, s.name, a.flat_key, a.key, a.value_type, a.int_value, a.string_value, a.real_value FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id WHERE a.key GLOB 'args.*'",
    "SELECT c.ts, k.name, c.value, p.pid FROM counter c JOIN process_counter_track k ON k.id = c.track_id JOIN process p ON p.upid = k.upid",
    "SELECT o.ts, o.name, i.ts, i.name FROM flow f JOIN slice o ON o.id = f.slice_out JOIN slice i ON i.id = f.slice_in",
    "SELECT p.pid, p.name FROM process p WHERE p.upid > 0",
];

/// Returns Perfetto's rows for each statement. If it is not installed, prints a message and returns `None`.
fn perfetto(trace: &Path) -> Option<Vec<Vec<String>>> {
    let lines = printed(Command::new(TPQ).arg(trace).args(STATEMENTS), "")?;
    let results = lines.lines().map(|line| {
        let rows: Vec<Vec<Value>> = serde_json::from_str(line).unwrap();
        sorted(rows.iter().map(|row| row_text(row)).collect())
    });
    Some(results.collect())
}

/// Formats a row as text. The query tool returns integers that JavaScript cannot represent as texts.
fn row_text(row: &[Value]) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_i64() {
            Some(long) => long.to_string(),
            None => number.as_f64().unwrap().to_string(),
        },
        other => other.to_string(),
    };
    row.iter().map(text).collect::<Vec<_>>().join(" | ")
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

/// Equivalents of the statements for our tables: a table and its columns. `a.b` is column `b` of the row whose id is in column `a`.
const COLUMNS: [(&str, &str); STATEMENTS.len()] = [
    (
        "slice",
        "ts dur name category depth parent_id.name parent_id.ts thread_dur",
    ),
    (
        "slice",
        "ts name track_id.utid.tid track_id.utid.name track_id.utid.upid.pid track_id.utid.upid.name",
    ),
    (
        "args",
        "arg_set_id.ts arg_set_id.name flat_key key value_type int_value string_value real_value",
    ),
    ("counter", "ts track_id.name value track_id.upid.pid"),
    (
        "flow",
        "slice_out.ts slice_out.name slice_in.ts slice_in.name",
    ),
    ("process", "pid name"),
];

/// Rows of our tables by table and id.
struct RowsById(BTreeMap<&'static str, HashMap<i64, Row>>);

impl RowsById {
    fn new(tables: &Tables) -> RowsById {
        let ids = ["slice", "counter", "flow", "track"].map(|table| (table, "id"));
        let others = [("thread", "utid"), ("process", "upid")];
        let by_id = ids.into_iter().chain(others).map(|(table, key)| {
            let rows = tables.rows(table);
            let count = rows.len();
            let rows = rows.into_iter();
            let by_id = rows.map(|row| (row[key].as_i64().unwrap(), row));
            let by_id: HashMap<i64, Row> = by_id.collect();
            assert_eq!(by_id.len(), count, "{table}.{key} must be unique");
            (table, by_id)
        });
        RowsById(by_id.collect())
    }

    /// Returns a cell of a row, or of a row that it refers to. Returns null if it does not refer to a row.
    fn cell(&self, row: &Row, column: &str) -> Value {
        let Some((key, column)) = column.split_once('.') else {
            return row[column].clone();
        };
        let table = match key {
            "track_id" => "track",
            "utid" => "thread",
            "upid" => "process",
            _ => "slice",
        };
        let id = row[key].as_i64();
        id.map_or(Value::Null, |id| self.cell(&self.0[table][&id], column))
    }
}

/// Returns the results of the statements on our tables.
fn ours(tables: &Tables) -> Vec<Vec<String>> {
    let by_id = RowsById::new(tables);
    let results = COLUMNS.iter().enumerate().map(|(nth, (table, columns))| {
        let mut rows = tables.rows(table);
        // The second statement selects only tracks of threads.
        rows.retain(|row| nth != 1 || by_id.cell(row, "track_id.kind") == json!("thread"));
        let text = |row: &Row| {
            let cells = columns.split(' ').map(|column| by_id.cell(row, column));
            row_text(&cells.collect::<Vec<_>>())
        };
        sorted(rows.iter().map(text).collect())
    });
    for arg in tables.rows("args") {
        assert_eq!(by_id.cell(&arg, "arg_set_id.arg_set_id"), arg["arg_set_id"]);
    }
    results.collect()
}

/// Compares the tables of a run with Perfetto's tables for the merged trace.
pub(crate) fn assert_agrees(paths: &[PathBuf]) {
    let folder = tempfile::tempdir().unwrap();
    let merged = folder.path().join("trace.json");
    let options = Options {
        output: Output::File(merged.clone()),
        settle: false,
        mode: Mode::Events(EventOptions {
            link_requests: false,
            ..EventOptions::default()
        }),
        ..Options::new(paths.to_vec())
    };
    trace_merge::merge(&options).unwrap();
    let ours = ours(&Tables::write(paths));
    let Some(theirs) = perfetto(&merged) else {
        return;
    };
    for ((ours, theirs), statement) in ours.iter().zip(&theirs).zip(STATEMENTS) {
        let difference = |some: &Vec<String>, others: &Vec<String>| {
            let missing = some.iter().filter(|row| !others.contains(row));
            missing.take(8).cloned().collect::<Vec<_>>()
        };
        assert!(
            ours == theirs,
            "{statement}\n{} rows, Perfetto has {}\nonly in ours: {:#?}\nonly in Perfetto's: {:#?}",
            ours.len(),
            theirs.len(),
            difference(ours, theirs),
            difference(theirs, ours)
        );
    }
}

fn assert_agrees_on(lines: &[Value]) {
    assert_agrees(&[trace(lines).path().to_owned()]);
}

#[test]
fn every_kind_of_event_is_as_in_perfetto() {
    let mut lines = events(include_str!("../traces/every-kind.txt"));
    lines[2]["args"] = json!({
        "i": 1, "neg": -5, "b53": 9_007_199_254_740_993_i64, "f": 1.5, "f4": 4.0, "t": true, "fa": false, "n": null, "s": "x", "e": "",
        "l": [1, "b", [2, 3], {"q": 1}], "o": {"p": {"r": "z"}}, "a.b": 3, "emptyl": [], "emptyo": {}, "esc": "a\"b\\c\u{e9}\n"});
    let [.., text, empty] = &mut lines[..] else {
        panic!()
    };
    (text["args"], empty["args"]) = (json!("text"), json!({}));
    assert_agrees_on(&lines);
}

/// The trace has begins and ends of the same time, ends without a name, and spans that overlap.
#[test]
fn spans_of_other_profilers_are_as_in_perfetto() {
    let lines = events(
        "B 1 10 ALLREDUCE
        X 1 11+1 copy
        B 1 12 WAIT rank=3
        E 1 12 dtype=float32
        E 1 70
        X 1/2 0+1000 forward
        X 1/2 10+10.5 __enter__
        X 1/2 20+970 step
        X 1/2 30+10 gemm",
    );
    assert_agrees_on(&lines);
}

/// The trace has async spans, begins without an end, spans that begin together in any order, overlapping spans, and arrows between all of them.
#[test]
fn many_events_are_as_in_perfetto() {
    let mut state = 7_u64;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut lines = Vec::new();
    for nth in 0..3_000_u64 {
        let (pid, tid, ts) = (1 + next(3), 1 + next(4), next(20_000));
        let name = format!("name {}", next(9));
        let dur = next(40) * next(12);
        // Each arrow has a different time, because the order of equal times follows from the file, and a merge changes it.
        let arrow_ts = 7 * nth;
        let thread = format!("{pid}/{tid}");
        let name = format!("'{name}'");
        let line = match next(12) {
            0..=4 => format!("X {thread} {ts}+{dur} {name} nth={nth} of=[{dur},\"{nth}\"]"),
            5 => format!("i {thread} {ts} {name} nth={nth}"),
            6 => {
                let (x, y) = (next(9), 0.5 * next(7) as f64);
                format!("C {thread} {ts} {name} x={x} y={y}")
            }
            7 => format!("b {thread} {ts} {name} cat=c id={nth}"),
            8 => {
                let end = ts + dur;
                format!(
                    "b {thread} {ts} {name} cat=c id={nth} nth={nth}
                    e {thread} {end} {name} cat=c id={nth} end={nth}"
                )
            }
            9 => format!("s {thread} {arrow_ts} arrow cat=c id={}", next(200)),
            10 => format!("t {thread} {arrow_ts} arrow cat=c id={}", next(200)),
            _ => format!("f {thread} {arrow_ts} arrow cat=c bp=e id={}", next(200)),
        };
        lines.extend(events(&line));
    }
    assert_agrees_on(&lines);
}

#[test]
fn traces_of_other_programs_are_as_in_perfetto() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures");
    for name in ["nat-overlap.json", "hta-rank-0.json", "pypto-two-replicas"] {
        assert_agrees(&[fixtures.join(name)]);
    }
}
