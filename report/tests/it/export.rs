//! Stacks for other programs, read back: by callgrind_annotate, by speedscope's own schema, and as flamegraph.pl reads lines.

use crate::events::events;
use crate::reports::{of_lines, only};
use crate::tool::run;
use serde_json::{Value, json};
use std::process::Command;
use trace_report::{StackFormat, stacks};

const VALIDATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/speedscope/validate");

/// `step` has `forward`, which has `matmul` twice; one name would break a line, and has what stands between names.
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
    stacks(&of_lines(&lines), format).unwrap()
}

#[test]
fn collapsed_stacks_are_lines_of_names_and_ns() {
    let text = exported(StackFormat::Collapsed);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let expected = [
        "worker;step 35000",
        "worker;step;a:b<U+000A>c 5000",
        "worker;step;forward 30000",
        "worker;step;forward;matmul 30000",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn speedscope_finds_frames_and_weights() {
    let text = exported(StackFormat::Speedscope);
    let file: Value = serde_json::from_str(&text).unwrap();
    let frames = file["shared"]["frames"].as_array().unwrap();
    let profile = only(file["profiles"].as_array().unwrap());
    let [samples, weights] = ["samples", "weights"].map(|of| profile[of].as_array().unwrap());
    assert_eq!(samples.len(), weights.len());
    let all: i64 = weights.iter().map(|ns| ns.as_i64().unwrap()).sum();
    assert_eq!((all, &profile["endValue"]), (100_000, &json!(100_000)));
    assert_eq!(profile["unit"], "nanoseconds");
    assert_eq!(profile["name"], "worker");
    let name = |number: &Value| {
        let number = usize::try_from(number.as_u64().unwrap()).unwrap();
        frames[number]["name"].as_str().unwrap()
    };
    let mut samples = samples.iter().map(|sample| sample.as_array().unwrap());
    let deepest = ["step", "forward", "matmul"];
    assert!(samples.any(|sample| sample.iter().map(name).eq(deepest)));
}

/// Whether a file is as the schema of speedscope's package wants it; nothing (said loudly) where that cannot be had.
fn is_speedscope(file: &Value) -> Option<bool> {
    let path = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(path.path(), file.to_string()).unwrap();
    let output = run(Command::new(VALIDATE).arg(path.path()), "")?;
    match output.status.code() {
        Some(0) => Some(true),
        Some(1) => Some(false),
        _ => panic!("{output:?}"),
    }
}

#[test]
fn speedscope_takes_the_file_by_its_schema() {
    let text = exported(StackFormat::Speedscope);
    let mut file: Value = serde_json::from_str(&text).unwrap();
    let Some(is_good) = is_speedscope(&file) else {
        return;
    };
    assert!(is_good, "{file}");
    file["profiles"][0].as_object_mut().unwrap().remove("unit");
    // The check checks something.
    assert_eq!(is_speedscope(&file), Some(false));
}

/// The inclusive time of a name, as callgrind_annotate prints it.
fn inclusive(said: &str, name: &str) -> Option<u64> {
    let name = format!(":{name}");
    let line = said.lines().find(|line| line.contains(&name))?;
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
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said} {output:?}");
    let found = ["step", "forward", "matmul"].map(|name| inclusive(&said, name));
    assert_eq!(found, [Some(100_000), Some(60_000), Some(30_000)], "{said}");
    let called = "cfn=matmul\ncalls=2 0\n0 30000\n";
    assert!(text.contains(called), "{text}");
}
