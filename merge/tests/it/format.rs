//! The examples of FORMAT.md are what it says they are.

use crate::invocation::RunDir;
use std::path::Path;

/// Every line of the page's `jsonl` examples, the header first.
fn examples() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/FORMAT.md");
    let text = std::fs::read_to_string(page).unwrap();
    let blocks = text
        .split("```jsonl\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let mut lines: Vec<String> = blocks.flat_map(str::lines).map(str::to_owned).collect();
    lines.sort_by_key(|line| !line.contains("sa_fragment"));
    lines
}

#[test]
fn examples_merge_without_damage() {
    let lines = examples();
    assert!(
        lines.len() >= 9 && lines[0].contains("sa_fragment"),
        "{lines:?}"
    );
    let dir = RunDir::new();
    dir.put(
        "4711",
        format_oracle::writer::line::stream(&lines).as_slice(),
    );
    let merged = dir.merge();
    // The ring that its header tells of is not needed: the last example is the record of a clean exit.
    assert_eq!(
        merged.report.number("damage_total"),
        0,
        "{:?}",
        merged.report.damage()
    );
    let shown = lines
        .iter()
        .filter(|line| !line.contains(r#""ph":"M""#))
        .count();
    assert_eq!(merged.trace.shown().count(), shown);
    assert_eq!(
        merged.trace.named("WorkerProcess.execute_step")["args"]["decode"],
        7
    );
    assert!(
        merged
            .trace
            .thread_names()
            .into_values()
            .any(|name| name == "worker-0")
    );
}
