//! Stacks for other programs, read back: by callgrind_annotate, by speedscope's own schema, and as flamegraph.pl reads lines.

use crate::golden::of_lines;
use crate::tool::run;
use serde_json::{Value, json};
use std::process::Command;
use trace_report::{RunReport, StackFormat, stacks};

const VALIDATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/speedscope/validate");

/// `step` has `forward`, which has `matmul` twice; one name would break a line, and has what stands between names.
fn report() -> RunReport {
    let span = |name: &str, ts: u64, dur: u64| json!({"ph": "X", "pid": 1, "tid": 1, "ts": ts, "dur": dur, "name": name});
    of_lines(&[
        json!({"ph": "M", "pid": 1, "tid": 1, "name": "process_name", "args": {"name": "worker"}}),
        span("step", 0, 100),
        span("forward", 10, 60),
        span("matmul", 15, 20),
        span("matmul", 40, 10),
        span("a;b\nc", 80, 5),
    ])
}

#[test]
fn collapsed_stacks_are_lines_of_names_and_ns() {
    let text = stacks(&report(), StackFormat::Collapsed).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "worker;step 35000",
            "worker;step;a:b<U+000A>c 5000",
            "worker;step;forward 30000",
            "worker;step;forward;matmul 30000"
        ]
    );
}

#[test]
fn speedscope_finds_frames_and_weights() {
    let text = stacks(&report(), StackFormat::Speedscope).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let frames = file["shared"]["frames"].as_array().unwrap();
    let [profile] = file["profiles"].as_array().unwrap().as_slice() else {
        panic!("{file}")
    };
    let [samples, weights] = ["samples", "weights"].map(|of| profile[of].as_array().unwrap());
    assert_eq!(samples.len(), weights.len());
    let all: i64 = weights.iter().map(|ns| ns.as_i64().unwrap()).sum();
    assert_eq!((all, &profile["endValue"]), (100_000, &json!(100_000)));
    assert_eq!(
        (&profile["unit"], &profile["name"]),
        (&json!("nanoseconds"), &json!("worker"))
    );
    let names = |sample: &Value| -> Vec<String> {
        let numbers = sample.as_array().unwrap().iter();
        let number = |of: &Value| usize::try_from(of.as_u64().unwrap()).unwrap();
        numbers
            .map(|of| frames[number(of)]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(
        samples
            .iter()
            .any(|sample| names(sample) == ["step", "forward", "matmul"])
    );
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
    let text = stacks(&report(), StackFormat::Speedscope).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    let Some(is_good) = is_speedscope(&file) else {
        return;
    };
    assert!(is_good, "{file}");
    file["profiles"][0].as_object_mut().unwrap().remove("unit");
    assert_eq!(
        is_speedscope(&file),
        Some(false),
        "the check checks nothing"
    );
}

/// The inclusive time of a name, as callgrind_annotate prints it.
fn inclusive(said: &str, name: &str) -> Option<u64> {
    let line = said
        .lines()
        .find(|line| line.contains(&format!(":{name}")))?;
    line.split_whitespace()
        .next()?
        .replace(',', "")
        .parse()
        .ok()
}

#[test]
fn callgrind_annotate_reads_calls() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = stacks(&report(), StackFormat::Callgrind).unwrap();
    std::fs::write(file.path(), &text).unwrap();
    let mut command = Command::new("callgrind_annotate");
    command
        .args(["--inclusive=yes", "--auto=no", "--threshold=100"])
        .arg(file.path());
    let Ok(output) = command.output() else {
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
