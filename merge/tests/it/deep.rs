//! Millions of nested objects: the time is proportional to the length of the text.

use crate::foreign::put;
use crate::invocation::{RunDir, trace_merge};
use crate::memory::Cost;
use std::path::Path;
use std::process::Stdio;

const GOOD: &str = r#"{"ph":"X","name":"good","cat":"c","ts":1,"dur":2,"pid":7,"tid":8}"#;
/// Length of the smaller text in bytes, and how many times longer the larger text is.
const SMALL: usize = 2 << 20;
const TIMES: u64 = 8;

/// Returns a document of about `bytes` bytes between two good events. It repeats `front`, and then
/// `back` as often.
fn nested(front: &str, back: &str, bytes: usize) -> String {
    let levels = bytes / (front.len() + back.len());
    let (fronts, backs) = (front.repeat(levels), back.repeat(levels));
    format!("{{\"traceEvents\":[{GOOD},{fronts}1{backs},{GOOD}]}}")
}

/// Returns the processor time of a command in ticks of 10 ms. The command must end by itself.
fn time(arguments: &[&str], path: &Path) -> u64 {
    let mut command = trace_merge();
    command.args(arguments).arg(path);
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let cost = Cost::measure(command);
    assert!(cost.code.is_some_and(|code| code < 3), "{:?}", cost.code);
    cost.ticks
}

#[test]
fn issue_19_a_deep_object_takes_linear_time() {
    let dir = RunDir::new();
    let output = dir.path().join("out.json");
    let merge = ["-q", "-o", output.to_str().unwrap()];
    for (front, back) in [
        (r#"{"a":"#, "}"),
        (r#"{"ph":"X","pid":7,"a":"#, "}"),
        (r#"{"a":"#, ""),
        ("[", "]"),
        (r#"[{"a":"#, "}]"),
    ] {
        let large = SMALL * usize::try_from(TIMES).unwrap();
        let [small, large] = [SMALL, large].map(|bytes| nested(front, back, bytes));
        let small = put(&dir, "small.json", small.as_bytes());
        let large = put(&dir, "large.json", large.as_bytes());
        for arguments in [&merge[..], &["--check"]] {
            let took = [&small, &large].map(|path| time(arguments, path));
            eprintln!("{front} {}: {took:?} ticks", arguments[0]);
            // Quadratic time would be 64 times as long. Fewer than four ticks are too few to
            // compare.
            assert!(took[1] < 3 * TIMES * took[0].max(4), "{front}: {took:?}");
        }
    }
}
