//! Golden traces: merges whose numbers are kept in `tests/golden`, and shown alike by Perfetto and by chrome://tracing.
//!
//! `UPDATE_GOLDEN=1` writes the files anew.

use crate::catapult;
use crate::foreign::{fixture, run};
use crate::invocation::{Merged, RunDir};
use crate::linked_perfetto::write_serving;
use crate::perfetto::hostile_run;
use crate::pypto;
use crate::random::Rng;
use crate::view::View;
use flate2::Compression;
use flate2::write::GzEncoder;
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};
use std::io::Write;
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.txt"))
}

/// Compares what the merge says, what its trace holds and what both viewers show with the golden numbers.
fn check(name: &str, merged: &Merged) {
    let own = View::of_trace(&merged.trace).text();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden(name), &own).unwrap();
    }
    let expected = std::fs::read_to_string(golden(name)).unwrap();
    assert_eq!(own, expected, "{name}: the trace");
    let phases = ["X", "B", "i", "I", "b", "n"];
    let told: u64 = phases.iter().map(|phase| merged.report.phase(phase)).sum();
    assert!(
        expected.starts_with(&format!("slices {told}\n")),
        "{name}: the report"
    );
    let folder = tempfile::tempdir().unwrap();
    for (file, bytes) in [
        ("t.json", merged.bytes.clone()),
        ("t.json.gz", packed(&merged.bytes)),
    ] {
        let path = folder.path().join(file);
        std::fs::write(&path, bytes).unwrap();
        if let Some(view) = View::of_perfetto(name, &path) {
            assert_eq!(view.text(), expected, "{name}: {file} in Perfetto");
        }
        if let Some(view) = catapult::view(name, &path) {
            assert_eq!(view.text(), expected, "{name}: {file} in catapult");
        }
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Flows in and between processes, counters, a lane, an unfinished span, damage, a ring's tail.
#[test]
fn golden_own() {
    check("golden_own", &hostile_run().merge());
}

#[test]
fn golden_pypto_serving() {
    check(
        "golden_pypto_serving",
        &Merged::of(&[], &[&pypto::fixture()]),
    );
}

#[test]
fn golden_kineto() {
    check(
        "golden_kineto",
        &Merged::of(&[], &[&fixture("kineto.json")]),
    );
}

#[test]
fn golden_viztracer() {
    check(
        "golden_viztracer",
        &Merged::of(&[], &[&fixture("viztracer.json")]),
    );
}

/// A trace of an NPU, a log of simpler and one with async events beside a run.
#[test]
fn golden_beside() {
    let dir = run(7, 5_000_000_000);
    let paths = ["trace_view.json", "simpler.log", "tracing-chrome.json"].map(fixture);
    let mut all: Vec<&Path> = vec![dir.path()];
    all.extend(paths.iter().map(PathBuf::as_path));
    let offset = format!("{}=5s", paths[2].display());
    check("golden_beside", &Merged::of(&["--offset", &offset], &all));
}

/// Spans of two threads that overlap without nesting, and instants among them.
#[test]
fn golden_overlapping() {
    let dir = RunDir::new();
    let process = Process::new(10);
    let mut fragment = process.fragment();
    let lines: Vec<String> = (0..300_u64)
        .map(|serial| {
            let on = process.thread(10 + u32::try_from(serial % 2).unwrap());
            let (ts_ns, dur_ns) = (5_000_000 + serial * 10_007, 5_000 + serial * 7_013 % 60_000);
            match serial % 5 {
                0 => on.instant(ts_ns, "instant", ""),
                _ => on.span(ts_ns, dur_ns, "step", ""),
            }
        })
        .collect();
    fragment.block(1, 0, &stream(&lines));
    fragment.write_here(&dir.fragments());
    let merged = dir.merge();
    assert!(merged.report.number("overlapping_spans") > 50);
    check("golden_overlapping", &merged);
}

/// Requests through processes of both recorders, linked by the merge.
#[test]
fn golden_requests() {
    let dir = RunDir::new();
    write_serving(&mut Rng::new(0), &dir.fragments());
    let merged = dir.merge();
    assert_eq!(merged.report.0["links"]["requests"], 25);
    check("golden_requests", &merged);
}

/// In the order of their times: viewers show the same.
#[test]
fn golden_sorted() {
    let dir = RunDir::new();
    write_serving(&mut Rng::new(0), &dir.fragments());
    let mut fragment = Fragment::foreign(40);
    let line = r#"{"name":"late","cat":"c","ph":"X","ts":4999999.5,"dur":1.25,"pid":40,"tid":40}"#;
    fragment.line(line);
    fragment.write_here(&dir.fragments());
    check("golden_sorted", &Merged::of(&["--sort"], &[dir.path()]));
}
