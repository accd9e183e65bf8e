//! `sa-profile sql`: what the engine gets, what is left behind, and how hostile names and paths are taken.

use crate::{command, said};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const ENGINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/sql/python");
/// What it exits with where an engine cannot be had.
const NOT_HERE: i32 = 3;
/// A name that would turn a line around, clear a terminal, and end a text.
const HOSTILE: &str = "it's \u{202e}\u{1b}[2J, \"so\"";
/// As what reads traces spells it out.
const SPELLED: &str = "it's <U+202E><U+001B>[2J, \"so\"";

/// A trace with three spans, of which one has a hostile name.
fn trace(folder: &Path) -> PathBuf {
    let span = |ts: u64, name: &str| json!({"ph": "X", "pid": 7, "tid": 1, "ts": ts, "dur": 5, "name": name, "args": {"request_id": name}});
    let lines = [span(1, "step"), span(10, "step"), span(20, HOSTILE)];
    let path = folder.join("trace.json");
    fs::write(&path, json!({ "traceEvents": lines }).to_string()).unwrap();
    path
}

/// A folder with a program `python3`, for the path.
fn python_that(does: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("python3");
    fs::write(&path, format!("#!/bin/sh\n{does}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn the_engine_gets_statement_and_tables_which_go_afterwards() {
    let (folder, scratch) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let does = "shift 2; echo \"$@\"; for last; do :; done; ls \"$last\"; cat; exit 1";
    let python = python_that(does);
    let path = format!("{}:/usr/bin:/bin", python.path().display());
    let output = command(&[
        "sql",
        "--engine",
        "spark",
        "--master",
        "spark://h:1",
        "--format",
        "csv",
    ])
    .env("PATH", path)
    .env("TMPDIR", scratch.path())
    .args([trace(folder.path()).as_os_str(), "SELECT 1".as_ref()])
    .output()
    .unwrap();
    let said = said(output, scratch.path());
    assert_eq!((said.code, said.stderr.as_str()), (Some(1), ""));
    let lines: Vec<&str> = said.stdout.lines().collect();
    let first = "--format csv --engine spark --master spark://h:1 -- DIR/sa-profile-tables-";
    assert!(lines[0].starts_with(first), "{lines:?}");
    assert!(
        lines.contains(&"slice") && lines.contains(&"metadata"),
        "{lines:?}"
    );
    assert_eq!(lines.last(), Some(&"SELECT 1"));
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_run_is_said() {
    let folder = TempDir::new().unwrap();
    let trace = trace(folder.path());
    let run = |words: [&str; 2]| {
        let mut command = command(&["sql"]);
        let output = command.env("PATH", "/none").args(words).output().unwrap();
        said(output, folder.path())
    };
    let unknown = run([trace.to_str().unwrap(), "nmaes"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.stderr.contains("names, recorded") && unknown.stderr.contains("found \"nmaes\"")
    );
    assert_eq!(run(["/no/run", "names"]).code, Some(2));
    let without = run([trace.to_str().unwrap(), "names"]);
    assert_eq!(without.code, Some(2));
    let expected = "sa-profile: python3: expected Python 3.10 or newer, found none: ";
    assert!(without.stderr.starts_with(expected), "{}", without.stderr);
}

/// Where DuckDB is; nothing (said loudly) where it cannot be had.
#[expect(clippy::print_stderr, reason = "it says where it does not run")]
fn path_with_duckdb(test: &str) -> Option<String> {
    let output = Command::new(ENGINES).arg("duckdb").output().unwrap();
    if output.status.code() == Some(NOT_HERE) {
        eprint!(
            "SKIPPED {test}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        return None;
    }
    assert!(output.status.success());
    let python = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    Some(python.parent().unwrap().display().to_string())
}

#[test]
fn hostile_names_and_paths_are_taken_as_they_are() {
    let Some(path) = path_with_duckdb("hostile_names_and_paths_are_taken_as_they_are") else {
        return;
    };
    let outer = TempDir::new().unwrap();
    let folder = outer.path().join("it's [a] {b} *?\n\"c\"");
    fs::create_dir(&folder).unwrap();
    let trace = trace(&folder);
    let tables = folder.join("tables");
    let made = command(&["tables", "--to"])
        .arg(&tables)
        .arg(&trace)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    // A module of the working directory is none of Python's.
    fs::write(folder.join("csv.py"), "raise SystemExit(9)").unwrap();
    let run = |run: &Path, words: &[&str]| {
        let mut command = command(&["sql"]);
        let command = command.env("PATH", &path).current_dir(&folder);
        said(command.arg(run).args(words).output().unwrap(), outer.path())
    };
    let by_name =
        "SELECT name, COUNT(*) AS n, MAX(NULL) AS nothing FROM slice GROUP BY name ORDER BY n DESC";
    for of in [&trace, &tables] {
        let rows = run(of, &[by_name, "--format", "json"]);
        assert_eq!((rows.code, rows.stderr.as_str()), (Some(0), ""));
        let rows: Value = serde_json::from_str(&rows.stdout).unwrap();
        let expected = json!([{"name": "step", "n": 2, "nothing": null}, {"name": SPELLED, "n": 1, "nothing": null}]);
        assert_eq!(rows, expected);
    }
    let table = run(&tables, &[by_name]).stdout;
    let expected = "name                            n  nothing\nstep                            2\nit's <U+202E><U+001B>[2J, \"so\"  1\n";
    assert_eq!(table, expected);
    // Not even what a statement itself makes.
    let made = run(&tables, &["SELECT CHR(27) || '[2J' || CHR(8238) AS made"]);
    assert_eq!(made.stdout, "made\n<U+001B>[2J<U+202E>\n");
    let csv = run(&tables, &[by_name, "--format", "csv"]).stdout;
    let quoted = SPELLED.replace('"', "\"\"");
    assert_eq!(csv, format!("name,n,nothing\nstep,2,\n\"{quoted}\",1,\n"));
    let refused = run(&tables, &["SELECT nmae FROM slice"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    assert!(
        refused.stderr.starts_with("sa-profile: sql: duckdb: "),
        "{}",
        refused.stderr
    );
    // Tables without a row have their columns.
    let empty = run(
        &tables,
        &[
            "SELECT COUNT(*) AS n, MAX(value) AS most FROM counter",
            "--format",
            "csv",
        ],
    );
    assert_eq!(empty.stdout, "n,most\n0,\n");
    assert_eq!(run(&tables, &["losses", "--format", "json"]).stdout, "[]\n");
}
