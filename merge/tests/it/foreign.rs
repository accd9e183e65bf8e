//! Traces of other profilers: every form contains all its events, however it is compressed,
//! formatted or cut off.

use crate::invocation::{Merged, RunDir, packed};
use crate::random::{self, Rng};
use crate::trace::assert_same;
use format_oracle::writer::Process;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/foreign")
        .join(name)
}

/// Returns a run of one process with one span that begins at `start_ns`.
pub(crate) fn run(pid: u32, start_ns: u64) -> RunDir {
    let mut process = Process::new(pid);
    process.main = true;
    let on = process.main_thread();
    let span = on.span(start_ns, 9_000_000_000, "recorded", "");
    RunDir::with_block(&process, &[process.anchor(start_ns), span])
}

/// Writes a trace next to the run.
pub(crate) fn put(dir: &RunDir, name: &str, text: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn compressed_traces_are_read_as_far_as_they_go() {
    let dir = run(7, 5_000_000_000);
    let text = std::fs::read(fixture("trace_view.json")).unwrap();
    let whole = packed(&text);
    let path = put(&dir, "torn.json.gz", &whole[..whole.len() - 60]);
    let merged = Merged::new(&[], &[dir.path(), &path]);
    assert_eq!(merged.report.kind("bad_gzip"), 1);
    let input = &merged.report.0["inputs"][1];
    assert_eq!(input["bytes"], whole.len() - 60);
    assert_eq!(input["damage"], 2);
    assert!(merged.trace.all_named("aten::mm").len() > 1);
    // All members are unpacked, and bytes after them are reported.
    let (first, second) = text.split_at(text.len() / 2);
    let members = [packed(first), packed(second)].concat();
    for (rest, damage) in [(&b""[..], 0), (b"behind", 1)] {
        let path = put(&dir, "members.json.gz", &[&members, rest].concat());
        let merged = Merged::new(&[], &[dir.path(), &path]);
        assert_eq!(merged.trace.all_named("MatMulV2").len(), 3);
        assert_eq!(merged.report.number("damage_total"), damage);
        assert_eq!(merged.report.kind("bad_gzip"), damage);
    }
}

/// A random document with an object, a list or lines has the same events as a fragment with these
/// lines.
#[test]
fn every_form_has_the_events_of_its_lines() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let process = Process::new(4711);
        let lines = random::lines(&mut rng, process.main_thread(), 40);
        let text = String::from_utf8(lines).unwrap();
        let plain = RunDir::new();
        plain.put("4711", text.as_bytes());
        let expected = Merged::new(&[], &[plain.path()]);
        let document = document(&mut rng, &text);
        let dir = RunDir::new();
        let path = put(&dir, "t.json", &document);
        let found = Merged::new(&[], &[&path]);
        let what = format!("{seed}: {}", String::from_utf8_lossy(&document));
        let events = [&expected, &found].map(|merged| merged.trace.comparable());
        assert_same(&events[0], &events[1], &what);
        assert_eq!(found.report.number("damage_total"), 0, "{what}");
    }
}

/// Returns the events of these lines in a random form.
fn document(rng: &mut Rng, lines: &str) -> Vec<u8> {
    let pretty = rng.one_in(2);
    let mut spread = |line: &str| match pretty && rng.one_in(2) {
        true => {
            let event: Value = serde_json::from_str(line).unwrap();
            serde_json::to_string_pretty(&event).unwrap()
        }
        false => line.to_owned(),
    };
    let lines = lines.lines().filter(|line| !line.is_empty());
    let events: Vec<String> = lines.map(&mut spread).collect();
    let comma = [",", ",\n", "\n,\n  ", "\n"][rng.below(4)];
    let listed = events.join(comma);
    let text = match rng.below(5) {
        0 => format!("{{\"traceEvents\":[{listed}]}}"),
        1 => format!(
            r#"{{"schemaVersion": 1, "x": {{"y": [1, "]"]}}, "traceEvents": [{listed} ], "z": 0}}"#
        ),
        2 => format!("[{listed}]"),
        3 => format!("[\n{listed}"),
        _ => events.join("\n") + "\n",
    };
    match rng.one_in(3) {
        true => packed(text.as_bytes()),
        false => text.into_bytes(),
    }
}
