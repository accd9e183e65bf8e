//! The examples in FORMAT.md are valid.

use crate::invocation::RunDir;
use std::path::Path;

/// Returns every line of the page's `jsonl` examples, the header first.
fn examples() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/FORMAT.md");
    let text = std::fs::read_to_string(page).unwrap();
    let blocks = text.split("```jsonl\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    let mut lines: Vec<String> = blocks.flat_map(str::lines).map(str::to_owned).collect();
    lines.sort_by_key(|line| !line.contains("sa_fragment"));
    lines
}

#[test]
fn examples_merge_without_damage() {
    let lines = examples();
    assert!(lines.len() >= 9 && lines[0].contains("sa_fragment"));
    let dir = RunDir::with_lines("4711", &lines);
    let merged = dir.merge();
    // The ring that the header refers to is not needed, because the last example is the record of a
    // clean exit.
    assert_eq!(merged.report.damage(), []);
    let is_shown = |line: &&String| !line.contains(r#""ph":"M""#);
    let shown = lines.iter().filter(is_shown).count();
    assert_eq!(merged.trace.shown().count(), shown);
    let step = merged.trace.named("WorkerProcess.execute_step");
    assert_eq!(step["args"]["decode"], 7);
    let mut names = merged.trace.thread_names().into_values();
    assert!(names.any(|name| name == "worker-0"));
}
