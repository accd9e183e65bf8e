//! Exported stacks, read back by callgrind_annotate, by speedscope's own schema, and as flamegraph.pl reads lines.

use crate::events::events;
use crate::reports::{fixture, report_from_events};
use crate::tool::printed;
use serde_json::{Value, json};
use std::process::Command;
use trace_report::{StackFormat, stacks};

const VALIDATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/speedscope/validate");

/// Exports the stacks of a small trace: `step` contains `forward`, which contains `matmul` twice. One name contains a
/// line break and the separator of names.
fn exported(format: StackFormat) -> String {
    let mut lines = events(
        "P 1 worker
        X 1 0+100 step
        X 1 10+60 forward
        X 1 15+20 matmul
        X 1 40+10 matmul
        X 1 80+5 odd",
    );
    lines[5]["name"] = json!("a;b\nc");
    stacks(&report_from_events(&lines), format).unwrap()
}

#[test]
fn stacks_are_readable_by_other_programs() {
    let lines = exported(StackFormat::Collapsed);
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.sort_unstable();
    let expected = [
        "worker;step 35000",
        "worker;step;a:b<U+000A>c 5000",
        "worker;step;forward 30000",
        "worker;step;forward;matmul 30000",
    ];
    assert_eq!(lines, expected);
    let speedscope: Value = serde_json::from_str(&exported(StackFormat::Speedscope)).unwrap();
    let expected = fixture("stacks.speedscope.json");
    let text = std::fs::read_to_string(&expected).unwrap();
    assert_eq!(speedscope, serde_json::from_str::<Value>(&text).unwrap());
    // Validate with the schema of speedscope's package, if that can be installed.
    printed(Command::new(VALIDATE).arg(expected), "");
}

/// Returns the inclusive time of a name, as callgrind_annotate prints it.
fn inclusive(output: &str, name: &str) -> Option<u64> {
    let name = format!(":{name}");
    let line = output.lines().find(|line| line.contains(&name))?;
    let time = line.split_whitespace().next()?;
    time.replace(',', "").parse().ok()
}

#[test]
fn callgrind_annotate_reads_calls() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = exported(StackFormat::Callgrind);
    std::fs::write(file.path(), &text).unwrap();
    let mut command = Command::new("callgrind_annotate");
    let options = ["--inclusive=yes", "--auto=no", "--threshold=100"];
    let Ok(output) = command.args(options).arg(file.path()).output() else {
        eprintln!("SKIPPED callgrind_annotate_reads_calls: no callgrind_annotate");
        return;
    };
    let printed_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed_text} {output:?}");
    let found = ["step", "forward", "matmul"].map(|name| inclusive(&printed_text, name));
    assert_eq!(
        found,
        [Some(100_000), Some(60_000), Some(30_000)],
        "{printed_text}"
    );
    let called = "cfn=matmul\ncalls=2 0\n0 30000\n";
    assert!(text.contains(called), "{text}");
}
