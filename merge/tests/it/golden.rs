//! Golden traces: the numbers of merges, stored in `tests/golden`. Perfetto and chrome://tracing
//! show the same.
//!
//! `UPDATE_GOLDEN=1` rewrites the files.

use crate::catapult;
use crate::foreign::{fixture, run};
use crate::invocation::{Merged, RunDir, packed};
use crate::linked_perfetto::{self, write_serving};
use crate::perfetto::hostile_run;
use crate::pypto;
use crate::random::Rng;
use crate::view::View;
use format_oracle::writer::Process;
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.txt"))
}

/// Compares the report, the trace and what both viewers show with the golden numbers.
fn check(name: &str, merged: &Merged) {
    let own = View::from_trace(&merged.trace).text();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden(name), &own).unwrap();
    }
    let expected = std::fs::read_to_string(golden(name)).unwrap();
    assert_eq!(own, expected, "{name}: the trace");
    let phases = ["X", "B", "i", "I", "b", "n"].map(|phase| merged.report.phase(phase));
    let slices = format!("slices {}\n", phases.iter().sum::<u64>());
    assert!(expected.starts_with(&slices), "{name}: the report");
    let folder = tempfile::tempdir().unwrap();
    let mut files = vec![("t.json", merged.bytes.clone())];
    files.extend((name == "golden_own").then(|| ("t.json.gz", packed(&merged.bytes))));
    for (file, bytes) in files {
        let path = folder.path().join(file);
        std::fs::write(&path, bytes).unwrap();
        if let Some(view) = View::from_perfetto(name, &path) {
            assert_eq!(view.text(), expected, "{name}: {file} in Perfetto");
        }
        if let Some(view) = catapult::view(name, &path) {
            assert_eq!(view.text(), expected, "{name}: {file} in catapult");
        }
    }
}

/// Flows in and between processes, counters, a lane, an unfinished span, damage, and the tail of a
/// ring.
#[test]
fn golden_own() {
    check("golden_own", &hostile_run().merge());
}

#[test]
fn golden_pypto_serving() {
    let merged = Merged::new(&[], &[&pypto::fixture()]);
    check("golden_pypto_serving", &merged);
}

#[test]
fn golden_kineto() {
    let merged = Merged::new(&[], &[&fixture("kineto.json")]);
    check("golden_kineto", &merged);
}

/// A trace of an NPU, a log of simpler and a trace with async events, next to a run.
#[test]
fn golden_next_to_a_run() {
    let dir = run(7, 5_000_000_000);
    let paths = ["trace_view.json", "simpler.log", "tracing-chrome.json"].map(fixture);
    let mut all: Vec<&Path> = vec![dir.path()];
    all.extend(paths.iter().map(PathBuf::as_path));
    let offset = format!("{}=5s", paths[2].display());
    check(
        "golden_next_to_a_run",
        &Merged::new(&["--offset", &offset], &all),
    );
}

/// Spans of two threads that overlap without nesting, and instants among them.
#[test]
fn golden_overlapping() {
    let process = Process::new(10);
    let line = |serial: u64| {
        let on = process.thread(10 + u32::from(serial % 2 == 1));
        let (ts_ns, dur_ns) = (5_000_000 + serial * 10_007, 5_000 + serial * 7_013 % 60_000);
        match serial % 5 {
            0 => on.instant(ts_ns, "instant", ""),
            _ => on.span(ts_ns, dur_ns, "step", ""),
        }
    };
    let merged = RunDir::with_block(&process, &(0..300).map(line).collect::<Vec<_>>()).merge();
    assert!(merged.report.number("overlapping_spans") > 50);
    check("golden_overlapping", &merged);
}

/// Requests through processes of both recorders, linked by the merge. Viewers show the same if the
/// trace is sorted.
#[test]
fn golden_requests() {
    let dir = RunDir::new();
    write_serving(&mut Rng::new(0), &dir.fragments());
    for options in [&[][..], &["--sort"]] {
        let merged = Merged::new(options, &[dir.path()]);
        assert_eq!(merged.report.0["links"]["requests"], 25);
        check("golden_requests", &merged);
        linked_perfetto::check("golden_requests", &merged);
    }
}
