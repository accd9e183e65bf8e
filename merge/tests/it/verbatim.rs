//! `--verbatim`, compared with the simplest possible merge: every line that is a JSON object,
//! unchanged, in the order of the files' names.

use crate::invocation::{Merged, RunDir};
use crate::random::{Rng, write_foreign, write_own};
use serde_json::Value;
use std::path::Path;

/// Returns the objects of the simplest merge of a folder.
fn naive(folder: &Path) -> Vec<Value> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "jsonl"))
        .collect();
    files.sort();
    let mut objects = Vec::new();
    for file in files {
        let bytes = std::fs::read(file).unwrap();
        let lines = bytes.split(|byte| *byte == b'\n');
        // Python's own parser accepts NaN, which JSON does not allow. The trace has null instead.
        let text = lines.map(|line| String::from_utf8_lossy(line).replace(":NaN", ":null"));
        let parsed = text.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        objects.extend(parsed.filter(Value::is_object));
    }
    objects
}

/// Merges a folder with `--verbatim` and compares the trace with the simplest merge's. Returns the
/// number of events.
pub(crate) fn assert_as_naive(folder: &Path, what: &str) -> u64 {
    let merged = Merged::new(&["--verbatim"], &[folder]);
    let (expected, found) = (naive(folder), &merged.trace.events);
    assert!(expected == *found, "{what}: {expected:#?}\n{found:#?}");
    let counted = merged.report.number("events_total");
    assert_eq!(counted, expected.len() as u64, "{what}");
    assert_eq!(merged.report.number("events_added"), 0, "{what}");
    counted
}

/// Lines that are no events, and lines that are not JSON.
const ODD: [&str; 14] = [
    r#"{"name":"ok"}"#,
    r#" {"ts":1,"name":"no phase"} "#,
    r#"{"ph":"X","ts":1,"pid":5,"tid":6,"name":"no duration"}"#,
    r#"{"ph":"i","name":"no pid","ts":-3.5}"#,
    r#"{"ph":"M","name":"process_name","args":{"name":"no pid"}}"#,
    r#"{"a":"\u0000","a":1e300}"#,
    "{}",
    "",
    "[1]",
    "17",
    "not json",
    r#"{"name":"torn"#,
    r#"{"name":"NaN","args":{"x":NaN}}"#,
    "{\"name\":\"bad \x01\"}",
];

#[test]
fn random_fragments_of_others_stay_as_they_are() {
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let dir = RunDir::new();
        for pid in [7, 10, 9000] {
            let lines = rng.below(40);
            write_foreign(&mut rng, &dir.fragments(), pid, lines, true);
            let path = dir.fragments().join(format!("trace.{pid}.jsonl"));
            let text = std::fs::read_to_string(&path).unwrap();
            let mut lines: Vec<_> = text.lines().collect();
            for _ in 0..rng.below(12) {
                let at = rng.below(lines.len() + 1);
                lines.insert(at, ODD[rng.below(ODD.len())]);
            }
            // The last line may lack its newline, and may be torn.
            let end = if rng.one_in(2) { "\n" } else { "" };
            std::fs::write(&path, lines.join("\n") + end).unwrap();
        }
        assert_as_naive(&dir.fragments(), &format!("seed {seed}"));
    }
}

/// They have the same events in the same order as in another merge, with the same ids.
#[test]
fn fragments_of_ours_lose_only_the_records_of_the_format() {
    for seed in 0..60 {
        let (mut rng, dir) = (Rng::new(1000 + seed), RunDir::new());
        for pid in [7, 10] {
            write_own(&mut rng, &dir.fragments(), pid, true);
        }
        let events = |option| {
            let merged = Merged::new(&["--no-settle", option], &[dir.path()]);
            let shown = merged.trace.shown();
            let members =
                |event: &Value| ["name", "args", "id", "id2"].map(|key| event[key].clone());
            shown.map(members).collect::<Vec<_>>()
        };
        let (found, expected) = (events("--verbatim"), events("--no-link-requests"));
        assert_eq!(found, expected, "seed {seed}");
    }
}
